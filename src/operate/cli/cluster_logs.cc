#include "operate/cli/cluster_logs.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "ground/process/signal_watch.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

// The files into which its jobs write, read as they grow.
class OutputFiles {
 public:
  OutputFiles(const Record& record, bool prefixed) : record_(record), prefixed_(prefixed) {}

  // Whole lines that came since the last call; with `all` also one without its end.
  std::string more(bool all) {
    std::string text;
    for (const std::string& name : names()) {
      std::string& pending = pending_[name];
      pending += read(name);
      std::size_t end = all ? pending.size() : pending.rfind('\n') + 1;  // npos + 1 is 0
      const std::string lines = pending.substr(0, end);
      pending.erase(0, end);
      text += prefixed_ ? with_prefix(lines, fs::path(name).stem().string()) : lines;
    }
    return text;
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(record_.place, failed)) {
      const std::string name = entry.path().filename().string();
      if (name == record_.id + ".log" || (name.starts_with(record_.id + "_") && name.ends_with(".log")))
        names.push_back(name);
    }
    std::ranges::sort(names, [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    return names;
  }
  std::string read(const std::string& name) {
    const std::unique_ptr<Store> store = open_posix_store(record_.place).value();
    const Result<Bytes> size = store->size(name);
    std::int64_t& at = at_[name];
    if (!size.ok() || size->count() == at) return "";
    if (size->count() < at) at = 0;  // another file of that name
    std::string text(static_cast<std::size_t>(std::min<std::int64_t>(size->count() - at, std::int64_t{64} << 20)), 0);
    store->read(name, at, std::as_writable_bytes(std::span(text))).value();
    at += static_cast<std::int64_t>(text.size());
    return text;
  }
  static std::string with_prefix(const std::string& lines, const std::string& prefix) {
    std::string text;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
      text += prefix + ": " + lines.substr(at, end - at);
      at = end;
    }
    return text;
  }

  const Record& record_;
  bool prefixed_;
  std::map<std::string, std::int64_t> at_;
  std::map<std::string, std::string> pending_;
};

std::string last_lines(const std::string& text, std::int64_t count) {
  if (count == 0) return text;
  std::size_t at = text.size();
  for (std::int64_t i = 0; i <= count && at != 0 && at != text.npos; ++i) at = text.rfind('\n', at - 1);
  return at == text.npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace

ExitCode show_output(ClusterRun& run, const OutputOptions& options, Context& context) {
  OutputFiles files(run.record, run.record.array);
  std::string text = files.more(!options.follow);
  std::string shown = last_lines(text, options.last);
  context.out.stream(shown);
  Seen seen = overall(run.look());
  if (!options.follow) {
    if (text.empty()) context.out.message(fmt::format("nothing yet: {}", told(run.record, seen)));
    Node node = run_node(run.record, std::span(&seen, 1), context.clock);
    context.out.json(node.set("output", shown));
    return ExitCode::done;
  }
  const SignalWatch signals;
  Seen before;
  for (int turn = 0; !signals.stop_requested(); ++turn) {
    if (turn % 10 == 0) seen = overall(run.look());  // the cluster is asked every two seconds
    if (seen.phase != before.phase || seen.reason != before.reason)
      context.out.message(fmt::format("[{}]", told(run.record, seen)));
    before = seen;
    const bool over = is_over(seen.phase) || seen.phase == Phase::unknown;
    context.out.stream(files.more(over));
    if (over) return seen.phase == Phase::done ? ExitCode::done : ExitCode::no;
    context.clock.sleep(Seconds(0.2));
  }
  return ExitCode::done;
}

}  // namespace systole::cli
