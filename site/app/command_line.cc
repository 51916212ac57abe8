#include "site/app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "site/app/commands.h"
#include "site/app/site_settings.h"
#include "site/app/version.h"
#include "weir/base/id.h"
#include "weir/config/settings.h"
#include "weir/telemetry/log.h"

namespace weir::site {
namespace {

constexpr int kFailed = 1;
constexpr int kUsedWrongly = 2;

// What all commands share, and the flags that override settings.
struct Common {
  std::optional<std::string> config_file;
  config::Settings::Variables flags;

  config::Settings settings() const {
    std::optional<std::filesystem::path> file;
    if (config_file) file = *config_file;
    auto settings = config::Settings::load(site_keys(), file, config::environment(), flags);
    check_together(settings);
    for (const std::string& warning : settings.warnings()) log::warn("{}", warning);
    return settings;
  }
};

using Run = std::function<int()>;

class CommandLine {
 public:
  CommandLine();
  int run(std::vector<std::string> arguments);

 private:
  CLI::App* command(CLI::App& parent, const std::string& name, const std::string& help, Run run);
  void add_data_commands();
  void add_job_commands();
  void add_admin_commands();
  void add_lab_commands();
  void add_cache_commands();
  void setting_flag(CLI::App& command, const std::string& flag, const std::string& key,
                    const std::string& help);
  int complain(const CLI::ParseError& error, const std::vector<std::string>& arguments);

  CLI::App app_{"Weir: a content platform that stays fast and exact when everybody comes at once", "weir"};
  Common common_;
  SeedOptions seed_;
  std::string seed_password_;
  ImportOptions import_;
  std::string role_ = "all";
  std::string job_;
  std::string email_;
  std::string lab_;
  bool json_ = false;
  ReplayOptions replay_;
  Run run_;
};

CommandLine::CommandLine() {
  app_.require_subcommand(1);
  app_.set_help_flag("-h,--help", "this text");
  app_.set_version_flag("--version", std::string(kVersion));
  auto* serve_command = command(app_, "serve", "serves the site until it is told to stop",
                                [this] { return serve(common_.settings(), role_); });
  setting_flag(*serve_command, "--listen", "http.listen", "ADDRESS:PORT; port 0 takes a free one");
  serve_command->add_option("--role", role_, "what this node does: all, or some of web, consumer and job")
      ->type_name("ROLE[,ROLE..]")
      ->capture_default_str();
  add_data_commands();
  add_job_commands();
  add_admin_commands();
  add_lab_commands();
  add_cache_commands();
  command(app_, "config", "the configuration in force, and where each value came from",
          [this] { return show_config(common_.settings()); });
  command(app_, "version", "which Weir this is", [] { return show_version(); });
}

CLI::App* CommandLine::command(CLI::App& parent, const std::string& name, const std::string& help, Run run) {
  CLI::App* made = parent.add_subcommand(name, help);
  made->set_help_flag("-h,--help", "this text");
  made->add_option_function<std::string>(
          "--config", [this](const std::string& file) { common_.config_file = file; },
          "a file of settings (weir.toml)")
      ->type_name("FILE");
  setting_flag(*made, "--data", "data", "everything Weir keeps on this machine");
  if (run) made->callback([this, run = std::move(run)] { run_ = run; });
  return made;
}

void CommandLine::setting_flag(CLI::App& command, const std::string& flag, const std::string& key,
                               const std::string& help) {
  command.add_option_function<std::string>(
      flag, [this, key](const std::string& value) { common_.flags[key] = value; }, help);
}

void CommandLine::add_data_commands() {
  auto* seed_command =
      command(app_, "seed", "fills the store with made-up people, articles and likes", [this] {
        if (!seed_password_.empty()) seed_.password = seed_password_;
        return seed(common_.settings(), seed_);
      });
  seed_command->add_option("--articles", seed_.articles, "how many articles")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000'000));
  seed_command->add_option("--users", seed_.users, "how many people: user1@example.com and so on")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  seed_command->add_option("--likes", seed_.likes, "how many likes")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000'000));
  seed_command->add_option("--random-seed", seed_.random_seed, "the same for the same seed")
      ->capture_default_str();
  seed_command->add_option("--password", seed_password_,
                           "of all of them; without it one is made and printed");

  auto* import_command = command(app_, "import", "brings in articles from elsewhere", {});
  import_command->require_subcommand(1);
  auto* hn =
      command(*import_command, "hn", "posts of Hacker News: id,title,url,points,comments,author,created_at",
              [this] { return import_hn(common_.settings(), import_); });
  hn->add_option("FILE", import_.file, "a CSV file, gzipped or not")->required();
  hn->add_flag("--shift", import_.shift, "moves the newest post to now, and all others with it");
}

void CommandLine::add_job_commands() {
  auto* job_command = command(app_, "job", "background work, one run at a time", {});
  job_command->require_subcommand(1);
  command(*job_command, "list", "the jobs by name", [this] { return list_jobs(common_.settings()); });
  auto* run = command(*job_command, "run", "one run in the foreground",
                      [this] { return run_job(common_.settings(), job_); });
  run->add_option("NAME", job_, "the job's name")->required();
}

void CommandLine::add_admin_commands() {
  auto* admin_command = command(app_, "admin", "who may administer the site", {});
  admin_command->require_subcommand(1);
  auto* grant = command(*admin_command, "grant", "makes somebody an administrator",
                        [this] { return grant_admin(common_.settings(), email_); });
  auto* revoke = command(*admin_command, "revoke", "takes it back",
                         [this] { return revoke_admin(common_.settings(), email_); });
  for (auto* each : {grant, revoke})
    each->add_option("EMAIL", email_, "the email that they signed up with")->required();
}

void CommandLine::add_lab_commands() {
  auto* lab_command = command(app_, "lab", "accidents of caches, each beside its cure", {});
  lab_command->require_subcommand(1);
  command(*lab_command, "list", "the accidents by name", [] { return list_labs(); });
  auto* run = command(*lab_command, "run",
                      "one of them, without and with its cure; exit code 0 only if the cure held",
                      [this] { return run_lab(lab_, json_); });
  run->add_option("NAME", lab_, "the accident's name")->required();
  run->add_flag("--json", json_, "prints JSON only");
}

void CommandLine::add_cache_commands() {
  constexpr std::uint64_t kMostEntries = 1'000'000'000;
  auto* cache_command = command(app_, "cache", "how well a cache would do", {});
  cache_command->require_subcommand(1);
  auto* replay =
      command(*cache_command, "replay", "the hit ratio on a trace of keys, beside LRU and the optimum",
              [this] { return replay_cache(replay_); });
  replay->add_option("FILE", replay_.file, "one key a line, gzipped or not")->required();
  const auto parse = [this](const std::string& text) {
    for (std::size_t from = 0, end = 0; end != std::string::npos; from = end + 1) {
      end = text.find(',', from);
      const auto capacity = parse_decimal(text.substr(from, end - from), kMostEntries);
      if (!capacity || *capacity == 0)
        throw CLI::ValidationError(
            "--capacity", '"' + text + "\" isn't entries from 1 to 1000000000, such as 500 or 500,1000");
      replay_.capacities.push_back(*capacity);
    }
  };
  replay->add_option_function<std::string>("--capacity", parse, "sizes of the cache, in entries")
      ->required()
      ->type_name("N[,N..]");
  replay->add_flag("--json", replay_.json, "for programs");
}

int CommandLine::run(std::vector<std::string> arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app_.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* shown = &app_;
    std::string before;
    for (; !shown->get_subcommands().empty(); shown = shown->get_subcommands().front())
      before += (before.empty() ? "" : " ") + shown->get_name();
    std::cout << shown->help(before);
    return 0;
  } catch (const CLI::CallForVersion&) {
    return show_version();
  } catch (const CLI::ParseError& error) {
    return complain(error, arguments);
  }
  return run_();
}

// Names the first word that the deepest command on the line doesn't know, with the nearest that it does.
int CommandLine::complain(const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  CLI::App* here = &app_;
  std::string path = "weir";
  bool is_value = false;  // of the flag before it
  for (const std::string& word : arguments) {
    std::vector<std::string> known;
    if (std::exchange(is_value, false)) continue;
    if (word.starts_with('-')) {
      for (const CLI::Option* option : here->get_options()) known.push_back(option->get_name());
      const std::string flag = word.substr(0, word.find('='));
      if (std::ranges::find(known, flag) != known.end()) {
        is_value = flag == word && here->get_option(flag)->get_items_expected_min() > 0;
        continue;
      }
      std::cerr << path << ": unknown flag " << flag << config::did_you_mean(flag, known) << '\n';
      return kUsedWrongly;
    }
    const auto commands = here->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty()) break;
    const auto found = std::ranges::find(commands, word, [](const CLI::App* c) { return c->get_name(); });
    if (found == commands.end()) {
      for (const CLI::App* other : commands) known.push_back(other->get_name());
      std::cerr << path << ": unknown command \"" << word << '"' << config::did_you_mean(word, known) << '\n';
      return kUsedWrongly;
    }
    here = *found;
    path += ' ' + word;
  }
  std::cerr << path << ": " << error.what() << "\nTry `" << path << " --help`.\n";
  return kUsedWrongly;
}

}  // namespace

int run_command_line(std::vector<std::string> arguments) {
  try {
    return CommandLine().run(std::move(arguments));
  } catch (const config::BadSetting& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return kUsedWrongly;
  } catch (const std::exception& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace weir::site
