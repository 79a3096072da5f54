// Every command, in the order in which users meet them.

#include "operate/cli/begin.h"
#include "operate/cli/command.h"

namespace systole::cli {

void add_commands(Subcommand app, Context& context) {
  add_init(app, context);
  add_import(app, context);
  add_plan(app, context);
  add_prove(app, context);
  add_backtest(app, context);
  add_lock(app, context);
  add_run(app, context);
  add_render(app, context);
  add_submit(app, context);
  add_resume(app, context);
  add_rank(app, context);
  add_generate(app, context);
  add_serve(app, context);
  add_embed(app, context);
  add_batch(app, context);
  add_eval(app, context);
  add_quantize(app, context);
  add_why(app, context);
  add_runs(app, context);
  add_logs(app, context);
  add_stop(app, context);
  add_exec(app, context);
  add_ssh(app, context);
  add_results(app, context);
  add_check(app, context);
  add_calibrate(app, context);
  add_doctor(app, context);
  add_explain(app, context);
  add_show(app, context);
  add_data(app, context);
  add_ckpt(app, context);
  add_models(app, context);
  add_catalog(app, context);
  add_help(app, context);
  add_reference(app, context);
}

}  // namespace systole::cli
