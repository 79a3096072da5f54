#include "operate/cli/explain_requests.h"

#include <filesystem>
#include <fstream>

#include "operate/explain/request_report.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualName = "access.log";
constexpr const char* kWritten = "`systole serve MODEL --access-log access.log` writes one";

}  // namespace

bool names_access_log(const std::string& word) {
  std::error_code ignored;
  return word.find('/') != word.npos || word.ends_with(".log") || word.ends_with(".jsonl") || fs::exists(word, ignored);
}

ExitCode explain_requests(const std::string& path, Context& context) {
  std::error_code ignored;
  const std::string file = fs::is_directory(path, ignored) ? (fs::path(path) / kUsualName).string() : path;
  if (!fs::exists(file, ignored))
    fail(error(ErrorKind::not_found, "there is no access log '{}'", file).hinted(kWritten));
  std::ifstream in(file);
  RequestReport report;
  bool has_lines = false, has_some = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    has_lines = true;
    has_some = report.add(line) || has_some;
  }
  if (!in.eof()) fail(error(ErrorKind::io, "cannot read '{}'", file));
  if (has_lines && !has_some)
    fail(error(ErrorKind::invalid, "'{}' is neither a key nor a topic, and no line of it is of an access log", file)
             .hinted(kWritten));
  if (report.requests() == 0)
    fail(error(ErrorKind::invalid, "'{}' has no request yet that a model answered", file)
             .hinted("ask the server for completions, and explain the log then"));
  context.out.data(report.text(context.out.width()));
  context.out.json(report.node());
  return ExitCode::done;
}

}  // namespace systole::cli
