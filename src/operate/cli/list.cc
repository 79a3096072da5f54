// Every command, in the order in which one meets them.

#include "operate/cli/command.h"

namespace systole::cli {

void add_commands(CLI::App& app, Context& context) {
#ifdef SYSTOLE_HAS_RUN
  add_plan(app, context);
  add_run(app, context);
  add_resume(app, context);
#endif
  add_explain(app, context);
  add_help(app, context);
}

}  // namespace systole::cli
