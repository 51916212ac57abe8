#include "site/app/csv.h"

#include <csv.h>
#include <zlib.h>

#include <array>
#include <exception>
#include <memory>

#include "weir/base/fault.h"

namespace weir::site {
namespace {

// What libcsv's callbacks fill. They are C: an exception waits here until the parser has returned.
struct Rows {
  const std::function<void(std::size_t, const std::vector<std::string>&)>& on_row;
  std::vector<std::string> row;
  std::size_t number = 0;
  std::exception_ptr error;
};

void take_field(void* bytes, std::size_t size, void* to) {
  static_cast<Rows*>(to)->row.emplace_back(static_cast<const char*>(bytes), size);
}

void take_row(int /*end*/, void* to) {
  auto& rows = *static_cast<Rows*>(to);
  ++rows.number;
  try {
    if (!rows.error) rows.on_row(rows.number, rows.row);
  } catch (...) {
    rows.error = std::current_exception();
  }
  rows.row.clear();
}

struct Parser {
  csv_parser state{};
  Parser() {
    if (csv_init(&state, CSV_STRICT | CSV_STRICT_FINI) != 0) throw Unusable("libcsv can't be started");
  }
  ~Parser() { csv_free(&state); }
};

}  // namespace

void read_csv(const std::filesystem::path& file,
              const std::function<void(std::size_t, const std::vector<std::string>&)>& on_row) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> in(gzopen(file.c_str(), "rb"), gzclose);
  if (!in) throw Unusable(errno_text("open " + file.string()));
  Parser parser;
  Rows rows{on_row, {}, 0, nullptr};
  const auto refuse = [&] {
    throw Unusable(file.string() + " isn't CSV after row " + std::to_string(rows.number) + ": " +
                   csv_strerror(csv_error(&parser.state)));
  };
  std::array<char, 65536> chunk{};
  for (;;) {
    const int n = gzread(in.get(), chunk.data(), chunk.size());
    if (n < 0) throw Unusable("read " + file.string() + ": the file is damaged");
    if (n == 0) break;
    const auto size = static_cast<std::size_t>(n);
    if (csv_parse(&parser.state, chunk.data(), size, take_field, take_row, &rows) != size) refuse();
    if (rows.error) std::rethrow_exception(rows.error);
  }
  if (csv_fini(&parser.state, take_field, take_row, &rows) != 0) refuse();
  if (rows.error) std::rethrow_exception(rows.error);
}

}  // namespace weir::site
