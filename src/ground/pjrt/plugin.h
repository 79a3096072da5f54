#pragma once
// A compiler and runtime of a vendor's behind XLA's plugin interface (PJRT C API): a shared library with one function,
// GetPjrtApi, that gives a table of functions. Loaded when asked for; nothing of it is linked.
//
// The interface's version is 0.minor, and each minor may make structs longer. A plugin below kOldestApi is refused, one
// above kNewestApi is taken with a warning (both are what tests ran with); one of another major version is refused.
//
// A plugin is the vendor's code in our process: it may write to stderr, abort or hang, and stays loaded until the
// process ends. Who must survive that loads it in a child process.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/pjrt/named_value.h"

namespace systole::pjrt {

class Api;  // api.h, of this folder alone

struct ApiVersion {
  int major = 0, minor = 0;
  auto operator<=>(const ApiVersion&) const = default;
};
std::string to_string(ApiVersion version);  // "0.116"

inline constexpr ApiVersion kOldestApi{0, 72};
inline constexpr ApiVersion kNewestApi{0, 116};

// A loaded plugin; copies are the same one. Everything made by it keeps it. Thread-safe.
class Plugin {
 public:
  // Loads and starts it. libtpu looks for a cloud's metadata server for minutes unless TPU_SKIP_MDS_QUERY=1 was set
  // before; places.h knows what each plugin wants set.
  // Errors: not_found; invalid (a library that is no plugin); corrupt (no library, or one whose table makes no sense);
  // unsupported (its version); what the plugin says when it starts.
  static Result<Plugin> load(const std::string& path);

  const std::string& path() const;
  ApiVersion version() const;
  // What to tell the user: its version is newer than any that was tried. Empty otherwise.
  std::string warning() const;
  // Its own: "xla_version", "stablehlo_current_version", … Errors: what the plugin says.
  Result<std::vector<NamedValue>> attributes() const;
  // A StableHLO version such as "1.13.7" of its attribute, nothing where it does not say.
  std::optional<std::string> newest_stablehlo() const;

  const std::shared_ptr<const Api>& api() const { return api_; }

 private:
  explicit Plugin(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  std::shared_ptr<const Api> api_;
};

}  // namespace systole::pjrt
