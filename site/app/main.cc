#include "site/app/command_line.h"

int main(int argc, char** argv) {
  return weir::site::run_command_line({argv + 1, argv + argc});
}
