// Boost.Asio's and Beast's non-template code, compiled once for everyone: their headers alone cost seconds in
// each translation unit otherwise.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
