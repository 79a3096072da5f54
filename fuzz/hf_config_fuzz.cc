// Any bytes as the config.json of a Hugging Face model. What is taken must make a workload or be refused, and what a
// workload makes of it must be written so that it is read back the same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "execute/weights/hf_config.h"
#include "execute/weights/name_map.h"

using namespace systole;

namespace {

Result<Workload> around(std::string_view config) {
  WorkloadOptions options;
  options.weights = [config](const std::string&) { return values_of_config(config, "config.json"); };
  return read_workload(
      "{ systole: 1, name: x, model: { weights: here }, data: { train: { files: x }, tokenizer: { vocabulary: 300 } }, "
      "train: { batch: 1, steps: 1, optimizer: { kind: sgd, rate: 1 } } }",
      "fuzz.yaml", options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto workload = around({reinterpret_cast<const char*>(data), size});
  if (!workload || workload->model.layers() > 100 || !name_map(workload->model)) return 0;
  const std::string written = config_of(workload->model);
  const auto again = around(written);
  if (!again || config_of(again->model) != written) std::abort();
  return 0;
}
