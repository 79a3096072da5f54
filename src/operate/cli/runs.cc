// `systole runs`: the runs there are, newest first, out of the index; --rebuild makes the index anew from the folders.

#include "ground/base/units.h"
#include "ground/store/lock.h"
#include "operate/cli/command.h"
#include "operate/observe/index.h"

namespace systole::cli {
namespace {

struct RunsOptions {
  std::string folder = kRunsFolder;
  bool rebuild = false;
};

// A run whose last process says nothing of its end: it still holds the folder, or it was killed.
std::string state_now(const RunRow& row, const std::string& folder) {
  if (row.state != "open") return row.state;
  const auto lock = lock_folder(folder + "/" + row.folder);
  return !lock.ok() && lock.error().kind == ErrorKind::busy ? "running" : "killed";
}

Node node_of(const RunRow& row, const std::string& state) {
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  return Node::map({{"folder", row.folder},
                    {"name", row.name},
                    {"state", state},
                    {"started_at", row.started_at},
                    {"opened_at", row.opened_at},
                    {"steps", row.steps},
                    {"tokens", row.tokens},
                    {"processes", row.processes},
                    {"parameters", row.parameters},
                    {"loss", maybe(row.loss)},
                    {"bits_per_byte", maybe(row.bits_per_byte)},
                    {"seconds_s", row.seconds.count()}});
}

std::vector<std::string> cells(const RunRow& row, const std::string& state) {
  const auto maybe = [](const std::optional<double>& number) {
    return number ? fmt::format("{:.4f}", *number) : std::string("-");
  };
  return {row.folder,
          state,
          row.started_at.substr(0, 19),
          with_commas(row.steps),
          with_commas(row.tokens),
          maybe(row.loss),
          maybe(row.bits_per_byte),
          to_string(row.seconds)};
}

ExitCode runs(const RunsOptions& options, Context& context) {
  const auto store = open_posix_store(options.folder);
  if (!store.ok() && options.folder != kRunsFolder) {
    fail(error(ErrorKind::not_found, "'{}' is no folder of runs", options.folder)
             .hinted("without a name it is 'runs', in the folder the command runs in"));
  }
  if (!store.ok()) {
    context.out.message(fmt::format("no runs yet: there is no folder '{}'", options.folder));
    context.out.json(Node::map({{"runs", Node::sequence()}}));
    return ExitCode::done;
  }
  RunIndex index = RunIndex::open(options.folder + "/index.sqlite").value();
  if (options.rebuild) {
    const int count = index.rebuild(**store).value();
    context.out.message(fmt::format("read {} run{} out of their folders", count, count == 1 ? "" : "s"));
  } else {
    index.refresh(**store).value();
  }
  Node list = Node::sequence();
  std::vector<std::vector<std::string>> rows;
  const std::vector<RunRow> all = index.list().value();
  for (const RunRow& row : all) {
    const std::string state = state_now(row, options.folder);
    list.push(node_of(row, state));
    rows.push_back(cells(row, state));
  }
  if (rows.empty())
    context.out.message("no runs yet");
  else
    context.out.data(
        table({"run", "state", "started (UTC)", "steps>", "tokens>", "loss>", "bits/byte>", "time>"}, rows));
  context.out.json(Node::map({{"runs", list}}));
  return ExitCode::done;
}

}  // namespace

void add_runs(CLI::App& app, Context& context) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App& command = add_command(app, "runs", "the runs there are, newest first", options, context, runs);
  command.add_option("folder", options->folder, "the folder of runs")->capture_default_str();
  command.add_flag("--rebuild", options->rebuild, "make the index anew from the folders");
}

}  // namespace systole::cli
