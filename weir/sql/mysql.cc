#include "weir/sql/mysql.h"

#include "weir/base/fault.h"
#include "weir/sql/mysql_connection.h"

namespace weir::sql {
namespace detail {
namespace {

class MysqlDriver final : public Driver {
 public:
  explicit MysqlDriver(MysqlSettings settings)
      : settings_(std::make_shared<const MysqlSettings>(std::move(settings))) {}

  std::unique_ptr<Connection> open(Role role) const override {
    return std::make_unique<MysqlConnection>(settings_, role);
  }
  std::string place() const override { return settings_->address.place(); }
  int separate_writers() const noexcept override { return settings_->options.writers; }
  bool commits_schema() const noexcept override { return true; }

 private:
  const std::shared_ptr<const MysqlSettings> settings_;
};

void check(const MysqlOptions& options) {
  if (options.writers < 1) throw Unusable("a MySQL store needs at least one writer");
  for (const auto timeout : {options.connect_timeout, options.read_timeout, options.write_timeout,
                             options.lock_timeout, options.migration_timeout})
    if (timeout <= std::chrono::milliseconds(0)) throw Unusable("a time-out of a MySQL store isn't positive");
  // Else a wait for a lock would look like a dead server.
  if (std::chrono::ceil<std::chrono::seconds>(options.lock_timeout) >=
      std::chrono::ceil<std::chrono::seconds>(options.read_timeout))
    throw Unusable("the lock_timeout of a MySQL store must be shorter than its read_timeout");
}

}  // namespace
}  // namespace detail

std::shared_ptr<const detail::Driver> mysql(const MysqlOptions& options) {
  detail::check(options);
  detail::MysqlSettings settings{.address = MysqlAddress::parse(options.url), .options = options};
  settings.options.url.clear();  // the password is in one place only
  return std::make_shared<detail::MysqlDriver>(std::move(settings));
}

}  // namespace weir::sql
