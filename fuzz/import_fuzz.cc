// Import of what somebody pasted: any bytes are a workload that reads, or an error that can be printed. Nothing of it
// is run.
#include <cstdint>
#include <string>

#include "describe/spec/workload.h"
#include "operate/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace systole;
  const Result<Imported> made = import_job({std::string(reinterpret_cast<const char*>(data), size), "input"});
  if (!made.ok()) {
    CHECK(!to_string(made.error()).empty(), "an error says nothing");
    return 0;
  }
  const Result<Workload> read = read_workload(made->yaml, "made");
  CHECK(read.ok(), "{}\n{}", to_string(read.error()), made->yaml);
  return 0;
}
