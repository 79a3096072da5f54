#include "describe/spec/targets/slurm_keys.h"

#include "describe/spec/schema.h"
#include "describe/spec/word_codecs.h"

namespace systole {

void add_slurm_keys(Schema& schema) {
  schema.sections.push_back({"slurm", "What Slurm takes besides.", {}, {}});
  auto& keys = schema.keys;
  constexpr std::string_view kBeside = "._/@:+,=-";
  const auto word = [&](const char* path, Field<std::string> at, const char* doc, const char* expected,
                        std::string_view beside) {
    keys.push_back({.path = path, .codec = word_codec(at, beside, expected), .doc = doc, .optional = true});
  };
  word("slurm.partition", AT(slurm.partition), "Partitions that may start it: a,b.", "name of a partition", kBeside);
  word("slurm.account", AT(slurm.account), "What its hours are charged to.", "name of an account", kBeside);
  word("slurm.qos", AT(slurm.qos), "Its quality of service.", "name of a quality of service", kBeside);
  word("slurm.constraint", AT(slurm.constraint), "Features that its nodes have: 'a100&ib'.", "constraint",
       "._/@:+,=-&|*()[]");
  word("slurm.reservation", AT(slurm.reservation), "Nodes set aside for it.", "name of a reservation", kBeside);
  word("slurm.gpu_type", AT(slurm.gpu_type), "Kind of its GPUs as the cluster calls it, beside gpus_per_node: a100.",
       "kind of GPU", "._-");
  keys.push_back({.path = "slurm.array",
                  .codec = optional_range_codec(AT(slurm.array), 0, 1'000'000),
                  .doc = "One run an index, 0:9 for ten of them, each with a seed of its own.",
                  .more = "The seed is train.seed and the index added up; each run has a folder of its own. A program "
                          "of your own finds the index in SLURM_ARRAY_TASK_ID.",
                  .optional = true});
  keys.push_back({.path = "slurm.at_once",
                  .codec = optional_count_codec(AT(slurm.at_once), 1, 1'000'000),
                  .doc = "Runs of slurm.array that may run at the same time. Without it, all.",
                  .optional = true,
                  .when = {"slurm.array", {}}});
}

}  // namespace systole
