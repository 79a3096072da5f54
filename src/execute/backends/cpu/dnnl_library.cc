// Stubs for the oneDNN functions that its C++ header calls; each jumps into the loaded library, so that the linker does
// not need libdnnl.so. A missing stub fails at link time, a function missing in the library fails in load_dnnl().

#include "execute/backends/cpu/dnnl_library.h"

#include <cpuid.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "ground/base/late_library.h"

#define FUNCTIONS(X)                    \
  X(engine_create)                      \
  X(engine_destroy)                     \
  X(get_effective_cpu_isa)              \
  X(matmul_desc_init)                   \
  X(memory_create)                      \
  X(memory_desc_get_size)               \
  X(memory_desc_init_by_strides)        \
  X(memory_destroy)                     \
  X(memory_set_data_handle_v2)          \
  X(post_ops_append_sum)                \
  X(post_ops_append_sum_v2)             \
  X(post_ops_create)                    \
  X(post_ops_destroy)                   \
  X(primitive_attr_create)              \
  X(primitive_attr_destroy)             \
  X(primitive_attr_set_post_ops)        \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_create)                   \
  X(primitive_desc_destroy)             \
  X(primitive_desc_iterator_create)     \
  X(primitive_desc_iterator_destroy)    \
  X(primitive_desc_iterator_fetch)      \
  X(primitive_desc_query)               \
  X(primitive_desc_query_md)            \
  X(primitive_destroy)                  \
  X(primitive_execute)                  \
  X(set_max_cpu_isa)                    \
  X(stream_create)                      \
  X(stream_destroy)                     \
  X(version)

namespace systole::cpu {
namespace {

struct Entries {
#define MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
  FUNCTIONS(MEMBER)
#undef MEMBER
  Status loaded = error(ErrorKind::internal, "oneDNN is called before it is loaded");
};

Entries& entries() {
  static Entries entries;
  return entries;
}

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
constexpr const char* kSoname = "libdnnl.so." TEXT(DNNL_VERSION_MAJOR);
constexpr LateLibrary::Requirement kOneDnn{kSoname, "libdnnl" TEXT(DNNL_VERSION_MAJOR),
                                           "the cpu backend multiplies with oneDNN"};

struct IsaWords {
  DnnlIsa isa;
  const char *name, *dnnl;  // our name, and oneDNN's
  dnnl_cpu_isa_t constant;
};

constexpr IsaWords kIsas[] = {
    {DnnlIsa::avx2, "avx2", "avx2", dnnl_cpu_isa_avx2},
    {DnnlIsa::avx2_vnni, "avx2-vnni", "avx2_vnni", dnnl_cpu_isa_avx2_vnni},
    {DnnlIsa::avx512, "avx512", "avx512_core", dnnl_cpu_isa_avx512_core},
    {DnnlIsa::avx512_vnni, "avx512-vnni", "avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
    {DnnlIsa::avx512_bf16, "avx512-bf16", "avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
    {DnnlIsa::amx, "amx", "avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
};

const IsaWords* words_of(DnnlIsa isa) {
  const auto* found = std::ranges::find(kIsas, isa, &IsaWords::isa);
  return found != std::end(kIsas) ? found : nullptr;
}

DnnlIsa isa_of(dnnl_cpu_isa_t isa) {
  const auto* found = std::ranges::find(kIsas, isa, &IsaWords::constant);
  return found != std::end(kIsas) ? found->isa : DnnlIsa::other;
}

// The pinned instruction set, and the one that dnnl_isa() has returned: from then on it is fixed.
struct Held {
  std::mutex mutex;
  std::optional<DnnlIsa> pinned, settled;
};

Held& held() {
  static Held held;
  return held;
}

std::optional<DnnlIsa> pinned_isa() {
  const std::scoped_lock lock(held().mutex);
  return held().pinned;
}

std::string named(int major, int minor, int patch, DnnlIsa isa) {
  return fmt::format("oneDNN {}.{}.{} {}", major, minor, patch, name_of(isa));
}

Status load(Entries& to) {
  const LateLibrary library = TRY(LateLibrary::load(kOneDnn));
#define FILL(name) TRY(library.fill(to.name, "dnnl_" #name));
  FUNCTIONS(FILL)
#undef FILL
  if (const auto pinned = pinned_isa(); pinned && to.set_max_cpu_isa(words_of(*pinned)->constant) != dnnl_success)
    return error(ErrorKind::unsupported, "{} does not let itself be held to {}", kSoname, name_of(*pinned));
  const dnnl_version_t* v = to.version();
  const std::string found = named(v->major, v->minor, v->patch, isa_of(to.get_effective_cpu_isa()));
  if (const std::string promised = dnnl_name(dnnl_isa()); found != promised) {
    return error(ErrorKind::unsupported, "{} was loaded where this program and machine promise {}: its numbers differ",
                 found, promised)
        .hinted("build Systole with the oneDNN that it runs with, or install the one it was built with");
  }
  return {};
}

// AMX tiles need the kernel's permission, requested once per process.
bool tiles_allowed() {
  constexpr long kGetPermission = 0x1022, kAskPermission = 0x1023, kTileData = 18;
  unsigned long allowed = 0;
  const auto has = [&allowed] {
    return syscall(SYS_arch_prctl, kGetPermission, &allowed) == 0 && (allowed >> kTileData & 1) != 0;
  };
  return has() || (syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0 && has());
}

struct MachineIsa {
  DnnlIsa best = DnnlIsa::other;
  bool avx2_vnni = false;
};

MachineIsa isa_of_machine() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool leaf7 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
  const bool tiles = leaf7 && (d >> 24 & 1) && (d >> 22 & 1) && (d >> 25 & 1);
  a = 0;
  const bool leaf71 = leaf7 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0;
  const bool vnni_of_avx2 = leaf71 && (a >> 4 & 1), bf16 = leaf71 && (a >> 5 & 1);
  const auto with = [&](DnnlIsa best) { return MachineIsa{best, vnni_of_avx2}; };
  if (!__builtin_cpu_supports("avx2")) return with(DnnlIsa::other);
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (!avx512) return with(vnni_of_avx2 ? DnnlIsa::avx2_vnni : DnnlIsa::avx2);
  if (!__builtin_cpu_supports("avx512vnni")) return with(DnnlIsa::avx512);
  if (!bf16) return with(DnnlIsa::avx512_vnni);
  return with(tiles && tiles_allowed() ? DnnlIsa::amx : DnnlIsa::avx512_bf16);
}

DnnlIsa most_by_environment() {
  std::string text;
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == 0) continue;
    text = value;
    break;
  }
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "sse41" || text == "avx") return DnnlIsa::other;
  const auto* found = std::ranges::find(kIsas, text, &IsaWords::dnnl);
  return found != std::end(kIsas) ? found->isa : DnnlIsa::amx;
}

}  // namespace

const char* name_of(DnnlIsa isa) {
  const IsaWords* words = words_of(isa);
  return words != nullptr ? words->name : "other";
}

std::optional<DnnlIsa> dnnl_isa_named(std::string_view word) {
  for (const IsaWords& words : kIsas) {
    if (word == words.name || word == words.dnnl) return words.isa;
  }
  return std::nullopt;
}

std::vector<std::string> dnnl_isa_names() {
  std::vector<std::string> names;
  for (const IsaWords& words : kIsas) names.emplace_back(words.name);
  return names;
}

DnnlIsa dnnl_isa() {
  const std::scoped_lock lock(held().mutex);
  if (!held().settled) {
    const MachineIsa machine = isa_of_machine();
    held().settled = held().pinned.value_or(lowered(machine.best, machine.avx2_vnni, most_by_environment()));
  }
  return *held().settled;
}

bool machine_has(DnnlIsa isa) {
  const MachineIsa machine = isa_of_machine();
  return lowered(machine.best, machine.avx2_vnni, isa) == isa;
}

Status pin_dnnl_isa(DnnlIsa isa) {
  CHECK(words_of(isa) != nullptr && machine_has(isa), "oneDNN cannot be held to {} here", name_of(isa));
  const std::scoped_lock lock(held().mutex);
  if (held().settled.value_or(isa) != isa) {
    return error(ErrorKind::invalid, "oneDNN computes with {} in this process: it cannot be held to {} any more",
                 name_of(*held().settled), name_of(isa));
  }
  held().pinned = isa;
  return {};
}

DnnlIsa lowered(DnnlIsa machine, bool avx2_vnni, DnnlIsa most) {
  const DnnlIsa isa = std::min(machine, most);
  return isa == DnnlIsa::avx2_vnni && !avx2_vnni ? DnnlIsa::avx2 : isa;
}

std::string dnnl_name(DnnlIsa isa) { return named(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH, isa); }

Status load_dnnl() {
  static const bool once = [] {
    entries().loaded = load(entries());
    return true;
  }();
  static_cast<void>(once);
  return entries().loaded;
}

}  // namespace systole::cpu

// REQUIRES: load_dnnl() succeeded; the code that makes a product checks it.
#define CALL(name, ...) return systole::cpu::entries().name(__VA_ARGS__)

extern "C" {

dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index) {
  CALL(engine_create, engine, kind, index);
}
dnnl_status_t dnnl_engine_destroy(dnnl_engine_t engine) { CALL(engine_destroy, engine); }
dnnl_cpu_isa_t dnnl_get_effective_cpu_isa(void) { CALL(get_effective_cpu_isa); }
dnnl_status_t dnnl_matmul_desc_init(dnnl_matmul_desc_t* desc, const dnnl_memory_desc_t* src,
                                    const dnnl_memory_desc_t* weights, const dnnl_memory_desc_t* bias,
                                    const dnnl_memory_desc_t* dst) {
  CALL(matmul_desc_init, desc, src, weights, bias, dst);
}
dnnl_status_t dnnl_memory_create(dnnl_memory_t* memory, const dnnl_memory_desc_t* desc, dnnl_engine_t engine,
                                 void* handle) {
  CALL(memory_create, memory, desc, engine, handle);
}
size_t dnnl_memory_desc_get_size(const dnnl_memory_desc_t* desc) { CALL(memory_desc_get_size, desc); }
dnnl_status_t dnnl_memory_desc_init_by_strides(dnnl_memory_desc_t* desc, int ndims, const dnnl_dims_t dims,
                                               dnnl_data_type_t type, const dnnl_dims_t strides) {
  CALL(memory_desc_init_by_strides, desc, ndims, dims, type, strides);
}
dnnl_status_t dnnl_memory_destroy(dnnl_memory_t memory) { CALL(memory_destroy, memory); }
dnnl_status_t dnnl_memory_set_data_handle_v2(dnnl_memory_t memory, void* handle, dnnl_stream_t stream) {
  CALL(memory_set_data_handle_v2, memory, handle, stream);
}
dnnl_status_t dnnl_post_ops_append_sum(dnnl_post_ops_t ops, float scale) { CALL(post_ops_append_sum, ops, scale); }
dnnl_status_t dnnl_post_ops_append_sum_v2(dnnl_post_ops_t ops, float scale, dnnl_data_type_t type) {
  CALL(post_ops_append_sum_v2, ops, scale, type);
}
dnnl_status_t dnnl_post_ops_create(dnnl_post_ops_t* ops) { CALL(post_ops_create, ops); }
dnnl_status_t dnnl_post_ops_destroy(dnnl_post_ops_t ops) { CALL(post_ops_destroy, ops); }
dnnl_status_t dnnl_primitive_attr_create(dnnl_primitive_attr_t* attr) { CALL(primitive_attr_create, attr); }
dnnl_status_t dnnl_primitive_attr_destroy(dnnl_primitive_attr_t attr) { CALL(primitive_attr_destroy, attr); }
dnnl_status_t dnnl_primitive_attr_set_post_ops(dnnl_primitive_attr_t attr, const_dnnl_post_ops_t ops) {
  CALL(primitive_attr_set_post_ops, attr, ops);
}
dnnl_status_t dnnl_primitive_attr_set_scratchpad_mode(dnnl_primitive_attr_t attr, dnnl_scratchpad_mode_t mode) {
  CALL(primitive_attr_set_scratchpad_mode, attr, mode);
}
dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t desc) {
  CALL(primitive_create, primitive, desc);
}
dnnl_status_t dnnl_primitive_desc_destroy(dnnl_primitive_desc_t desc) { CALL(primitive_desc_destroy, desc); }
dnnl_status_t dnnl_primitive_desc_iterator_create(dnnl_primitive_desc_iterator_t* iterator, const_dnnl_op_desc_t desc,
                                                  const_dnnl_primitive_attr_t attr, dnnl_engine_t engine,
                                                  const_dnnl_primitive_desc_t hint) {
  CALL(primitive_desc_iterator_create, iterator, desc, attr, engine, hint);
}
dnnl_status_t dnnl_primitive_desc_iterator_destroy(dnnl_primitive_desc_iterator_t iterator) {
  CALL(primitive_desc_iterator_destroy, iterator);
}
dnnl_primitive_desc_t dnnl_primitive_desc_iterator_fetch(const_dnnl_primitive_desc_iterator_t iterator) {
  CALL(primitive_desc_iterator_fetch, iterator);
}
dnnl_status_t dnnl_primitive_desc_query(const_dnnl_primitive_desc_t desc, dnnl_query_t what, int index, void* result) {
  CALL(primitive_desc_query, desc, what, index, result);
}
const dnnl_memory_desc_t* dnnl_primitive_desc_query_md(const_dnnl_primitive_desc_t desc, dnnl_query_t what, int index) {
  CALL(primitive_desc_query_md, desc, what, index);
}
dnnl_status_t dnnl_primitive_destroy(dnnl_primitive_t primitive) { CALL(primitive_destroy, primitive); }
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int num_args,
                                     const dnnl_exec_arg_t* args) {
  CALL(primitive_execute, primitive, stream, num_args, args);
}
dnnl_status_t dnnl_set_max_cpu_isa(dnnl_cpu_isa_t isa) { CALL(set_max_cpu_isa, isa); }
dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine, unsigned flags) {
  CALL(stream_create, stream, engine, flags);
}
dnnl_status_t dnnl_stream_destroy(dnnl_stream_t stream) { CALL(stream_destroy, stream); }
const dnnl_version_t* dnnl_version(void) { CALL(version); }
}
