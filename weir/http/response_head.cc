#include "weir/http/response_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "weir/http/problem.h"

namespace weir::http {
namespace {

void append_number(std::string& out, std::size_t number) {
  std::array<char, 20> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_status(std::string& out, unsigned status) {
  if (status == 200) {  // nearly every answer
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  append_number(out, status);
  out += ' ';
  out += reason_of(status);
  out += "\r\n";
}

bool is_visible(char c) {
  return c > 0x20 && c < 0x7f;
}

}  // namespace

std::string_view DateText::at(WallTime now) {
  namespace chrono = std::chrono;
  const auto second = chrono::floor<chrono::seconds>(now);
  if (second.time_since_epoch().count() == second_) return text_;
  second_ = second.time_since_epoch().count();
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = chrono::floor<chrono::days>(second);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(second - day);
  text_ = fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[chrono::weekday(day).c_encoding()],
                      unsigned(date.day()), kMonths[unsigned(date.month()) - 1], int(date.year()),
                      time.hours().count(), time.minutes().count(), time.seconds().count());
  return text_;
}

bool has_safe_headers(const Response& response) {
  const auto safe_value = [](std::string_view value) {
    bool unsafe = false;  // without a way out of the loop, so that it runs over many characters at once
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      unsafe |= (byte < 0x20 && byte != '\t') || byte == 0x7f;
    }
    return !unsafe;
  };
  return safe_value(response.content_type) && std::ranges::all_of(response.headers, [&](const auto& field) {
           return !field.first.empty() && safe_value(field.second) &&
                  std::ranges::all_of(field.first, [](char c) { return is_visible(c) && c != ':'; });
         });
}

void append_head(std::string& out, const Response& response, const HeadContext& context) {
  append_status(out, response.status);
  append_field(out, "Date", context.date);
  const std::size_t size = response.payload().size();
  if (size > 0) append_field(out, "Content-Type", response.content_type);
  // RFC 9110: a 204 has no Content-Length, and a 304's would be that of the answer it stands for.
  if (response.status != 204 && response.status != 304) {
    out += "Content-Length: ";
    append_number(out, size);
    out += "\r\n";
  }
  if (!context.request_id.empty()) append_field(out, "X-Request-Id", context.request_id);
  if (!context.keep_alive) {
    out += "Connection: close\r\n";
  } else if (context.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  for (const auto& [name, value] : response.headers) append_field(out, name, value);
  out += "\r\n";
}

}  // namespace weir::http
