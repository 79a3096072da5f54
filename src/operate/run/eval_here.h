#pragma once
// Evaluates models of this machine at suites of tasks (execute/serve/eval), and keeps the results in an archive.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/eval/results.h"
#include "ground/store/lock.h"
#include "operate/run/run_messages.h"
#include "operate/run/served_model.h"

namespace systole {

// As the options of `systole eval` have them.
struct EvalOptions {
  std::string out, samples, archive, backend = "cpu";
  std::vector<std::string> suites, models, require;
  std::int64_t limit = 0, context = 0, slots = 8, keep = 0;
  bool unsafe_command = false;
};

struct Evaluation {
  EvalSuite suite;
  std::vector<EvaluatedModel> models;
  std::vector<std::string> missed;  // requirements
  Node results;
  std::string samples;       // of an archive: a line of JSON an item
  bool interrupted = false;  // by a signal: the rest is not there, nor the files
  // Why the last task ended before its last item: the suite and the models are what all of them have whole, which may be
  // nothing, and the files have that.
  std::optional<Error> ended;
};

// What would end the command after hours is checked first. `progress`: a line, now and then. Errors: those of the suites,
// the models and their device; invalid: files of one name.
Result<Evaluation> evaluate_here(const EvalOptions& options, const std::function<void(const std::string&)>& progress,
                                 const RunMessages& messages, Clock& clock);

// A lock of the archive in a folder, which no other process changes while it is held.
Result<std::unique_ptr<FileLock>> lock_archive(const std::string& folder, Clock& clock);

// Adds an entry to the archive, and returns what the document says of it. Errors: those of the archive.
Result<Node> archive_results(const EvalOptions& options, const Evaluation& made, const RunMessages& messages,
                             Clock& clock);

}  // namespace systole
