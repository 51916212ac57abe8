// The command line: words and flags to a command and its settings.
#pragma once

#include <string>
#include <vector>

namespace weir::site {

// Runs what the arguments (without the program's name) ask for. Exit code: 0 done, 1 failed, 2 used wrongly;
// what went wrong is told on standard error.
int run_command_line(std::vector<std::string> arguments);

}  // namespace weir::site
