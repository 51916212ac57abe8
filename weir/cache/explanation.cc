#include "weir/cache/explanation.h"

namespace weir::cache {
namespace {

std::string text(std::optional<Explanation::Millis> time) {
  return time ? std::to_string(time->count()) + " ms" : "unknown";
}

std::string local_text(const Explanation& e) {
  const std::string left = e.local_left ? ", " + text(e.local_left) + " left" : "";
  switch (e.local) {
    case Explanation::Local::fresh:
      return "a value, fresh" + left;
    case Explanation::Local::stale:
      return "a value, due for a refresh" + left;
    case Explanation::Local::absent:
      return "known to be absent" + left;
    case Explanation::Local::unknown:
      break;
  }
  return "not known";
}

std::string filter_text(const Explanation& e) {
  if (!e.membership_error.empty()) return "failed: " + e.membership_error;
  if (!e.membership) return "";
  switch (*e.membership) {
    case Membership::absent:
      return "certainly absent";
    case Membership::fresh:
      return "perhaps there, and new: an absence would not be kept";
    case Membership::unknown:
      break;
  }
  return "perhaps there";
}

std::string remote_text(const Explanation& e) {
  using Remote = Explanation::Remote;
  const std::string lease = e.remote_lease ? "; leased for " + text(e.remote_lease) : "";
  switch (e.remote) {
    case Remote::value:
      return "a value, loaded " + text(e.remote_age) + " ago, " + text(e.remote_left) + " left" + lease;
    case Remote::absent:
      return "known to be absent, " + text(e.remote_left) + " left" + lease;
    case Remote::damaged:
      return "something that is no value of this cache, as good as nothing" + lease;
    case Remote::leased:
      return "no value; somebody has the lease to load it for " + text(e.remote_lease);
    case Remote::nothing:
      return "not known";
    case Remote::away:
      return "not asked, it failed a moment ago; asked again in " + text(e.asked_again);
    case Remote::failed:
      return "failed: " + e.remote_error;
    case Remote::unusable:
      return "of no use for this key: " + e.remote_error;
    case Remote::none:
      break;
  }
  return "";
}

std::string then_text(Explanation::Then then) {
  using Then = Explanation::Then;
  switch (then) {
    case Then::serve:
      return "serve what is here";
    case Then::serve_and_refresh:
      return "serve what is here and refresh it in the background";
    case Then::answer_absent:
      return "answer that there is none, without a load";
    case Then::fail:
      return "fail";
    case Then::join:
      return "wait for the load that is under way";
    case Then::take_remote:
      return "take what the remote level has";
    case Then::wait_for_other:
      return "wait for another node's load";
    case Then::load_in_bulkhead:
      return "load, when the bulkhead has a place";
    case Then::load_alone:
      return "load, and share it with nobody";
    case Then::load:
      break;
  }
  return "load";
}

void line(std::string& lines, const char* step, const std::string& what) {
  if (!what.empty()) lines.append(step).append(what) += '\n';
}

}  // namespace

std::string to_string(const Explanation& explanation) {
  std::string lines;
  line(lines, "local:  ", local_text(explanation));
  line(lines, "filter: ", filter_text(explanation));
  line(lines, "flight: ", explanation.under_way ? "a load is under way" : "");
  line(lines, "remote: ", remote_text(explanation));
  line(lines, "then:   ", then_text(explanation.then));
  return lines;
}

}  // namespace weir::cache
