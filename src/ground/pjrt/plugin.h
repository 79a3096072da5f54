#pragma once
// A vendor's compiler and runtime behind XLA's plugin interface (PJRT C API): a shared library with one function,
// GetPjrtApi, which returns a table of functions. Loaded on demand; nothing is linked.
//
// The interface's version is 0.minor; each minor version may extend structs. A plugin below kOldestApi is refused, one
// above kNewestApi is accepted with a warning (tests ran with both limits); another major version is refused.
//
// A plugin is vendor code in our process: it may write to stderr, abort or hang, and stays loaded until the process
// ends. To survive that, load it in a child process.

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

// A loaded plugin. Copies share state, and objects made from it keep it alive. Thread-safe.
class Plugin {
 public:
  // Loads and initializes it. libtpu queries a cloud's metadata server for minutes unless TPU_SKIP_MDS_QUERY=1 is set;
  // places.h has each plugin's environment.
  // Errors: not_found; invalid (a library, but not a plugin); corrupt (not a library, or an inconsistent table);
  // unsupported (its version); those of its initialization.
  static Result<Plugin> load(const std::string& path);

  const std::string& path() const;
  ApiVersion version() const;
  // A warning for the user if its version is newer than any that was tested; else empty.
  std::string warning() const;
  // The plugin's attributes: "xla_version", "stablehlo_current_version", … Errors: those of the plugin.
  Result<std::vector<NamedValue>> attributes() const;
  // The attribute with its StableHLO version, such as "1.13.7"; nothing if absent.
  std::optional<std::string> newest_stablehlo() const;

  const std::shared_ptr<const Api>& api() const { return api_; }

 private:
  explicit Plugin(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  std::shared_ptr<const Api> api_;
};

}  // namespace systole::pjrt
