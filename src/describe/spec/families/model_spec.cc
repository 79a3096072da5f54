#include "describe/spec/families/model_spec.h"

#include "describe/spec/families/families.h"

namespace systole {

const char* ModelSpec::family_name() const {
  return std::visit([](const auto& spec) { return spec.name(); }, family);
}
Task ModelSpec::task() const {
  return std::visit([](const auto& spec) { return spec.task(); }, family);
}

std::int64_t ModelSpec::context() const { return IN_FAMILY(context).get_or(family, 0); }
std::int64_t ModelSpec::target_context() const { return IN_FAMILY(target_context).get_or(family, 0); }
std::int64_t ModelSpec::vocabulary() const { return IN_FAMILY(vocabulary).get_or(family, 0); }
std::int64_t ModelSpec::layers() const { return IN_FAMILY(layers).get_or(family, 0); }
std::int64_t ModelSpec::width() const { return IN_FAMILY(width).get_or(family, 0); }
std::int64_t ModelSpec::heads() const { return IN_FAMILY(heads).get_or(family, 0); }
std::int64_t ModelSpec::experts() const { return IN_FAMILY(moe.experts).get_or(family, 0); }
double ModelSpec::dropout() const { return IN_FAMILY(dropout).get_or(family, 0); }

AdaptersSpec ModelSpec::adapters() const { return IN_FAMILY(adapters).get_or(family, {}); }

}  // namespace systole
