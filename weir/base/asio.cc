// Boost.Asio's and Beast's non-template code, compiled once for everyone: their headers alone cost seconds in
// each translation unit otherwise.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// An executor's last owner is told from the others by a release and an acquire fence, which the thread
// sanitizer doesn't see: it takes the owner's delete for a race with an earlier owner's release.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:boost::asio::execution::detail::shared_target_executor\n";
}
#endif
#endif
