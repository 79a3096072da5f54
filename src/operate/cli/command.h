#pragma once
// A command of `systole`: one file, cli/<name>.cc, with an options struct, a function that runs it and `add_<name>`,
// which declares the options. list.cc lists all commands. The logic of a command is below cli; only options and
// printing are here.
//
//   namespace systole::cli {
//   namespace {
//   struct WhyOptions { std::string run; };
//   ExitCode why(const WhyOptions& options, Context& context) { ... }
//   }  // namespace
//   void add_why(Subcommand app, Context& context) {
//     auto options = std::make_shared<WhyOptions>();
//     Subcommand command = add_command(app, "why", "where the time of a run went", options, context, why);
//     command.add_option("run", options->run, "a run's name, number or folder; without: the newest");
//   }
//
// A function may throw Failure: its error is printed, and the error's kind gives the exit code.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "operate/cli/exit_codes.h"
#include "operate/cli/options.h"
#include "operate/cli/printer.h"

namespace systole::cli {

// Passed to every command. Long-running ones create a SignalWatch (ground/process/signal_watch.h); the others end at
// the first Ctrl-C.
struct Context {
  Printer& out;
  Clock& clock;
  std::string command_line;        // as typed, for the run's records
  ExitCode exit = ExitCode::done;  // of the executed command
};

// Declares a command that calls `run` if chosen.
Subcommand add_command(Subcommand parent, const std::string& name, const std::string& help, Context& context,
                       std::function<ExitCode()> run);

template <typename Options>
Subcommand add_command(Subcommand parent, const std::string& name, const std::string& help,
                       const std::shared_ptr<Options>& options, Context& context,
                       ExitCode (*run)(const Options&, Context&)) {
  return add_command(parent, name, help, context, [options, &context, run] { return run(*options, context); });
}
// A group of commands: `systole data build`.
Subcommand add_group(Subcommand parent, const std::string& name, const std::string& help);

// Null if there is no command of that name.
const CLI::App* find_command(const CLI::App& parent, std::string_view name);
std::vector<std::string> names_of_commands(const CLI::App& parent);  // listed ones only
std::string help_text(const CLI::App& command);                      // the output of --help

// Parses, runs, prints; returns the process's exit code. `app` comes from make_app.
int run_command_line(const std::vector<std::string>& arguments);

// All commands and options, without running any. `context` must outlive it.
std::unique_ptr<CLI::App> make_app(Context& context);

// list.cc: every command.
void add_commands(Subcommand app, Context& context);

void add_plan(Subcommand app, Context& context);
void add_prove(Subcommand app, Context& context);
void add_backtest(Subcommand app, Context& context);
void add_lock(Subcommand app, Context& context);
void add_run(Subcommand app, Context& context);
void add_render(Subcommand app, Context& context);
void add_submit(Subcommand app, Context& context);
void add_resume(Subcommand app, Context& context);
void add_rank(Subcommand app, Context& context);
void add_generate(Subcommand app, Context& context);
void add_embed(Subcommand app, Context& context);
void add_batch(Subcommand app, Context& context);
void add_eval(Subcommand app, Context& context);
void add_quantize(Subcommand app, Context& context);
void add_serve(Subcommand app, Context& context);
void add_why(Subcommand app, Context& context);
void add_calibrate(Subcommand app, Context& context);
void add_doctor(Subcommand app, Context& context);
void add_runs(Subcommand app, Context& context);
void add_logs(Subcommand app, Context& context);
void add_stop(Subcommand app, Context& context);
void add_exec(Subcommand app, Context& context);
void add_ssh(Subcommand app, Context& context);
void add_results(Subcommand app, Context& context);
void add_check(Subcommand app, Context& context);
void add_explain(Subcommand app, Context& context);
void add_show(Subcommand app, Context& context);
void add_data(Subcommand app, Context& context);
void add_ckpt(Subcommand app, Context& context);
void add_models(Subcommand app, Context& context);
void add_catalog(Subcommand app, Context& context);
void add_help(Subcommand app, Context& context);
void add_reference(Subcommand app, Context& context);

}  // namespace systole::cli
