// Any bytes as JSON: an error with a place, or a document that survives being written as JSON and as YAML.

#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const systole::Result<systole::Node> parsed = systole::parse_json(text, "fuzz.json");
  if (!parsed.ok()) {
    systole::check_error(parsed.error(), "fuzz.json");
    return 0;
  }
  systole::read_everything(*parsed);
  systole::check_json(*parsed);
  systole::check_yaml(*parsed);
  return 0;
}
