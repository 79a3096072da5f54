// Reading a workload: any bytes are a workload or an error that can be printed, and what was read prints as a document
// that reads back to the same text.
#include <cstdint>
#include <string_view>

#include "describe/spec/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace systole;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Workload> workload = read_workload(text, "input");
  if (!workload.ok()) {
    CHECK(!to_string(workload.error()).empty(), "an error says nothing");
    CHECK(workload.error().kind == ErrorKind::invalid || workload.error().kind == ErrorKind::unsupported, "{}",
          to_string(workload.error()));
    return 0;
  }
  const std::string printed = to_yaml(*workload);
  const Result<Workload> again = read_workload(printed, "printed");
  CHECK(again.ok(), "{}\n{}", to_string(again.error()), printed);
  CHECK(to_yaml(*again) == printed, "{}", printed);
  return 0;
}
