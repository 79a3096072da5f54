#include "ground/pjrt/executable.h"

#include "ground/pjrt/handles.h"

namespace systole::pjrt {
namespace {

// PJRT_Buffer_Type: pjrt_c_api.h, API 0.105. Types without a Systole dtype (complex, 4-bit, …) have no row.
struct TypeRow {
  DType ours;
  int theirs;
};
constexpr TypeRow kTypes[] = {
    {DType::boolean, 1}, {DType::i8, 2},      {DType::i32, 4},     {DType::i64, 5},  {DType::u8, 6},
    {DType::u32, 8},     {DType::u64, 9},     {DType::f16, 10},    {DType::f32, 11}, {DType::f64, 12},
    {DType::bf16, 13},   {DType::f8e5m2, 16}, {DType::f8e4m3, 17},
};
static_assert(std::size(kTypes) == kNumDTypes);

Bytes bytes(std::int64_t count) { return Bytes(count); }

}  // namespace

int type_number(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.ours == dtype) return row.theirs;
  return 0;
}

std::optional<DType> dtype_of(int type_number) {
  for (const TypeRow& row : kTypes)
    if (row.theirs == type_number) return row.ours;
  return std::nullopt;
}

Result<std::string> Executable::name() const {
  return handle_->api().text_of<abi::ExecutableName>(handle_->get(), "tell a program's name");
}

Result<int> Executable::replicas() const {
  return static_cast<int>(TRY(handle_->api().value_of<abi::ExecutableReplicas>(handle_->get(), "count replicas")));
}

Result<int> Executable::partitions() const {
  return static_cast<int>(TRY(handle_->api().value_of<abi::ExecutablePartitions>(handle_->get(), "count partitions")));
}

Result<Bytes> Executable::code_size() const {
  return bytes(TRY(handle_->api().value_of<abi::ExecutableCodeSize>(handle_->get(), "tell the size of its code")));
}

Result<MemoryStats> Executable::memory() const {
  abi::ExecutableMemory args;
  args.executable = handle_->get();
  TRY(handle_->api().call(args, "tell a program's memory"));
  MemoryStats stats;
  stats.code = bytes(args.code);
  stats.arguments = bytes(args.arguments);
  stats.outputs = bytes(args.outputs);
  stats.aliased = bytes(args.aliased);
  stats.temporaries = bytes(args.temporaries);
  stats.host_code = bytes(args.host_code);
  stats.host_arguments = bytes(args.host_arguments);
  stats.host_outputs = bytes(args.host_outputs);
  stats.host_aliased = bytes(args.host_aliased);
  stats.host_temporaries = bytes(args.host_temporaries);
  stats.peak = bytes(args.peak);
  if (args.head.size >= sizeof args) stats.allocated = bytes(args.total_allocated);
  return stats;
}

Result<std::vector<NamedValue>> Executable::costs() const {
  const auto all = TRY(handle_->api().list_of<abi::ExecutableCosts>(handle_->get(), "tell a program's cost"));
  return named_values(all.list, all.num);
}

Result<OptimizedModule> Executable::optimized() const {
  abi::Program program;
  abi::ExecutableOptimized args;
  args.executable = handle_->get();
  args.program = &program;
  TRY(handle_->api().call(args, "give the optimised program"));  // only the size
  OptimizedModule module;
  module.bytes.resize(program.code_size);
  program.code = module.bytes.data();
  TRY(handle_->api().call(args, "give the optimised program"));
  if (program.code_size < module.bytes.size()) module.bytes.resize(program.code_size);
  module.format.assign(program.format, program.format_size);
  return module;
}

Result<std::vector<OutputType>> Executable::outputs() const {
  const Api& api = handle_->api();
  const auto types = TRY(api.list_of<abi::ExecutableOutputTypes>(handle_->get(), "tell the types of its outputs"));
  abi::ExecutableOutputDims dims;
  dims.object = handle_->get();
  TRY(api.call(dims, "tell the shapes of its outputs"));
  if (dims.num != types.num)
    return error(ErrorKind::corrupt, "{} tells {} types and {} shapes of a program's outputs", api.path(), types.num,
                 dims.num);
  std::vector<OutputType> result;
  const std::int64_t* at = dims.dims;
  for (std::size_t i = 0; i < types.num; ++i) {
    result.push_back({dtype_of(types.list[i]), Shape(at, at + dims.ranks[i])});
    at += dims.ranks[i];
  }
  return result;
}

Result<std::string> Executable::fingerprint() const {
  return handle_->api().text_of<abi::ExecutableFingerprint>(handle_->get(), "tell a program's fingerprint");
}

Result<std::string> Executable::serialized() const {
  abi::ExecutableSerialize args;
  args.executable = handle_->get();
  TRY(handle_->api().call(args, "serialise a program"));
  std::string result(args.bytes, args.bytes_size);
  if (args.free_backing != nullptr) args.free_backing(args.backing);
  return result;
}

}  // namespace systole::pjrt
