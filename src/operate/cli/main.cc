// `systole`: hands the command line over (command.h).

#include "operate/cli/command.h"

int main(int argc, char** argv) { return systole::cli::run_command_line({argv + 1, argv + argc}); }
