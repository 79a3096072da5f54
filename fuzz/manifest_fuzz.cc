// Any bytes as a manifest: as they come, and as the body under a first line that fits them, which gets past the hash.
// What reads must keep the rules of a manifest and come back the same from its own text.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "execute/checkpoint/manifest.h"
#include "ground/base/hash.h"

using namespace systole;
using namespace systole::checkpoint;

namespace {

void read(std::string_view text) {
  const auto manifest = parse_manifest(text, "fuzz");
  if (!manifest) return;
  if (!check(*manifest)) std::abort();
  const auto again = parse_manifest(to_text(*manifest), "fuzz");
  if (!again || again->tensors != manifest->tensors || again->chunks != manifest->chunks ||
      again->step != manifest->step || !(again->extra == manifest->extra) || again->metric != manifest->metric) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  const std::string hash = to_hex(hash128(fmt::format("{} {}\n{}", kManifestFormat, kManifestVersion, text)));
  read(fmt::format("{{\"format\":\"{}\",\"version\":{},\"hash\":\"{}\",\n{}", kManifestFormat, kManifestVersion, hash,
                   text));
  static_cast<void>(hashes_named_in(text));
  return 0;
}
