#include "ground/pjrt/plugin.h"

#include "ground/base/late_library.h"
#include "ground/pjrt/api.h"
#include "ground/pjrt/shared_library.h"

namespace systole::pjrt {
namespace {

constexpr const char* kGetIt = "tools/xla-plugins gets the plugins that were tried; systole doctor xla looks at them";

Result<const abi::Api*> table_of(const std::string& path) {
  Status whole = check_shared_library(path);
  if (!whole.ok()) return std::move(whole).error().hinted(kGetIt);
  // Without a '/' in the name, dlopen would search the library path.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  const Result<LateLibrary> library = LateLibrary::open(file);
  if (!library.ok())
    return error(ErrorKind::corrupt, "{} cannot be loaded: {}", path, library.error().message).hinted(kGetIt);
  auto* const get_api = library->find<const abi::Api*()>("GetPjrtApi");
  if (get_api == nullptr)
    return error(ErrorKind::invalid, "{} is a library, but no PJRT plugin: it has no GetPjrtApi", path).hinted(kGetIt);
  const abi::Api* table = get_api();
  if (table == nullptr || table->head.size < offsetof(abi::Api, functions))
    return error(ErrorKind::corrupt, "{} gives no table of functions", path).hinted(kGetIt);
  return table;
}

}  // namespace

Result<Plugin> Plugin::load(const std::string& path) {
  const abi::Api* table = TRY(table_of(path));
  const ApiVersion version{table->version.major, table->version.minor};
  if (version.major != kOldestApi.major) {
    return error(ErrorKind::unsupported, "{} speaks PJRT API {}, another major version than {}", path,
                 to_string(version), to_string(kNewestApi))
        .hinted(kGetIt);
  }
  if (version < kOldestApi) {
    return error(ErrorKind::unsupported, "{} speaks PJRT API {}, older than {}", path, to_string(version),
                 to_string(kOldestApi))
        .hinted(kGetIt);
  }
  auto api = std::make_shared<const Api>(table, path);
  abi::PluginInitialize start;
  TRY(api->call(start, "start"));
  return Plugin(std::move(api));
}

const std::string& Plugin::path() const { return api_->path(); }
ApiVersion Plugin::version() const { return api_->version(); }

std::string Plugin::warning() const {
  if (version() <= kNewestApi) return "";
  return fmt::format("{} speaks PJRT API {}, newer than {}, the newest that was tried: it may refuse calls", path(),
                     to_string(version()), to_string(kNewestApi));
}

Result<std::vector<NamedValue>> Plugin::attributes() const {
  abi::PluginAttributes args;
  TRY(api_->call(args, "tell its attributes"));
  return named_values(args.attributes, args.num);
}

std::optional<std::string> Plugin::newest_stablehlo() const {
  const Result<std::vector<NamedValue>> all = attributes();
  if (!all.ok()) return std::nullopt;
  const NamedValue* value = find(*all, "stablehlo_current_version");
  const auto* parts = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(&value->value);
  if (parts == nullptr || parts->size() != 3) return std::nullopt;
  return fmt::format("{}.{}.{}", (*parts)[0], (*parts)[1], (*parts)[2]);
}

}  // namespace systole::pjrt
