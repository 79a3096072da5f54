#pragma once
// A suite of evaluations: a YAML file with tasks, and the items that each asks of a model, all read and checked before a
// model is loaded.
//
//   suite: 1
//   tasks:
//     - name: colours
//       kind: multiple_choice                # the likeliest of some continuations
//       data: colours.jsonl                  # or a list of examples; {"question": …, "options": […], "answer": 1}
//       context: "Question: {question}\nAnswer:"
//       choices: "{options}"                 # a field with a list, or a list of templates
//       target: "{answer}"                   # the right choice: its number from 0, or its text
//       few_shot: { data: train.jsonl, count: 2 }
//     - { name: sums, kind: exact_match, data: sums.jsonl, context: "{sum} =", target: "{result}", stop: ["\n"], tokens: 8 }
//     - { name: steps, kind: regex, data: steps.jsonl, context: "{sum}", target: "{result}", pattern: 'is (\d+)' }
//     - { name: prose, kind: bits_per_byte, file: prose.txt }     # or data, and text: "{page}"
//     - name: polite
//       kind: judge                          # another model scores the answers (judge.h)
//       data: requests.jsonl
//       context: "{request}"
//       judge: { url: "https://HOST/v1", model: large, key: env:JUDGE_KEY, scores: [1, 10], pattern: 'Score: (\d+)',
//                prompt: "Rate how polite this is, as 'Score: N': {response}" }
//     - name: code
//       kind: pass_at_k                      # answers are programs (programs.h)
//       data: problems.jsonl
//       context: "{prompt}"
//       program: "{prompt}{response}\n{test}"
//       command: [python3, program.py]
//       samples: 10
//       k: 5
//       temperature: 0.8
//
// Paths are relative to the folder of the suite. A task's kinds, delimiters and few-shot contexts are those of
// lm-evaluation-harness: an example of few_shot is its context, `delimiter` (a space), its answer and `separator` (an
// empty line).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/text_pattern.h"
#include "execute/serve/eval/judge.h"
#include "execute/serve/eval/programs.h"
#include "ground/base/result.h"

namespace systole {

enum class EvalKind { multiple_choice, exact_match, regex, bits_per_byte, judge, pass_at_k };
const char* name_of(EvalKind kind);
// In the order in which results show them; the first is the task's usual one.
std::vector<std::string> metrics_of(EvalKind kind);
bool asks_for_answers(EvalKind kind);

struct EvalItem {
  std::string context = {};               // few-shot examples included
  std::vector<std::string> choices = {};  // multiple_choice: at least two, none empty
  std::size_t gold = 0;                   // the right one of them
  std::string target = {};                // exact_match, regex: the right answer; bits_per_byte: the text, not empty
  Node fields = {};                       // judge, pass_at_k: what prompt and program take, but for the response
};

struct EvalTask {
  std::string name;
  EvalKind kind = EvalKind::multiple_choice;
  std::vector<EvalItem> items = {};         // at least one
  std::string delimiter = " ";              // between context and choice
  std::vector<std::string> stop = {};       // what ends an answer, and is no part of it
  std::int64_t tokens = 256;                // of an answer, at most
  std::optional<TextPattern> pattern = {};  // regex
  std::optional<JudgeSpec> judge = {};      // judge
  std::optional<ProgramSpec> program = {};  // pass_at_k
};

struct EvalFile {
  std::string path, sha256;
};

struct EvalSuite {
  std::string path;                  // "a.yaml, b.yaml" of several
  std::vector<EvalTask> tasks;       // at least one; no two of one name
  std::vector<EvalFile> files = {};  // all that were read for it, itself first
  bool scores() const;               // a task asks how likely texts are
  bool generates() const;            // a task asks for answers
  bool runs_programs() const;
  // Of all that it asks: the SHA-256 of the hashes of its files, each with a line feed. Paths do not count.
  std::string sha256() const;
};

// `limit`: so many items of each task, the first; 0: all. Errors, each at its place, one of each task: those of reading
// files; invalid: keys, templates, examples.
Result<EvalSuite> read_suite(const std::string& path, std::int64_t limit = 0);

// Several suites as one, so that a model is loaded once for all: then a task is called SUITE/TASK, where SUITE is the
// file's name without its extension. Of one suite: as read_suite. Errors: those of all suites; invalid also: two suites of
// one name. REQUIRES: at least one path.
Result<EvalSuite> read_suites(const std::vector<std::string>& paths, std::int64_t limit = 0);

}  // namespace systole
