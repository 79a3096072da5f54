// Field numbers: openxla/xla xla/pjrt/proto/compile_options.proto (CompileOptionsProto, ExecutableBuildOptionsProto,
// OptionOverrideProto) and xla/xla_data.proto (DeviceAssignmentProto), as of 2026-06.

#include "ground/pjrt/compile_options.h"

#include <algorithm>

#include "ground/base/document.h"
#include "ground/pjrt/wire.h"

namespace systole::pjrt {
namespace {

WireWriter device_assignment(const CompileOptions& options) {
  WireWriter message;
  message.integer(1, options.replicas);    // replica_count
  message.integer(2, options.partitions);  // computation_count
  for (int partition = 0; partition < options.partitions; ++partition) {
    std::vector<std::int64_t> ids;
    for (int replica = 0; replica < options.replicas; ++replica)
      ids.push_back(options.devices[static_cast<std::size_t>(replica) * options.partitions + partition]);
    message.message(3, WireWriter().packed(1, ids));  // computation_devices { replica_device_ids }
  }
  return message;
}

WireWriter build_options(const CompileOptions& options) {
  WireWriter message;
  message.integer(1, -1);  // device_ordinal: no specific device
  message.integer(4, options.replicas);
  message.integer(5, options.partitions);
  if (options.spmd) message.integer(6, 1);                                       // use_spmd_partitioning
  if (!options.devices.empty()) message.message(9, device_assignment(options));  // device_assignment
  if (options.shardy) message.integer(19, 1);                                    // use_shardy_partitioner
  return message;
}

WireWriter flag_value(const OptionValue& value) {  // OptionOverrideProto: a oneof
  WireWriter message;
  if (const auto* text = std::get_if<std::string>(&value)) message.bytes(1, *text);
  if (const auto* yes = std::get_if<bool>(&value)) message.integer(2, *yes ? 1 : 0);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) message.integer(3, *whole);
  if (const auto* real = std::get_if<double>(&value)) message.f64(4, *real);
  return message;
}

}  // namespace

Result<OptionValue> option_value(std::string_view text) {
  const Node node(kind_of_plain(text), std::string(text));
  if (node.kind() == NodeKind::boolean) return OptionValue(TRY(node.as_bool()));
  if (node.kind() != NodeKind::number) return OptionValue(std::string(text));
  if (const Result<std::int64_t> whole = node.as_int(); whole.ok()) return OptionValue(*whole);
  return OptionValue(TRY(node.as_double()));
}

std::string to_string(const OptionValue& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<std::string>(value);
}

CompilerFlags flags_over(const CompilerFlags& defaults, const CompilerFlags& asked) {
  CompilerFlags flags;
  for (const auto& flag : defaults)
    if (std::ranges::find(asked, flag.first, &CompilerFlags::value_type::first) == asked.end()) flags.push_back(flag);
  flags.insert(flags.end(), asked.begin(), asked.end());
  return flags;
}

std::string serialized(const CompileOptions& options) {
  CHECK(options.replicas >= 1 && options.partitions >= 1, "{} replicas, {} partitions", options.replicas,
        options.partitions);
  CHECK(options.devices.empty() ||
            options.devices.size() == static_cast<std::size_t>(options.replicas) * options.partitions,
        "{} devices for {} × {}", options.devices.size(), options.replicas, options.partitions);
  WireWriter message;
  message.message(3, build_options(options));  // executable_build_options
  for (const auto& [name, value] : options.flags) {
    WireWriter entry;  // a map entry: key 1, value 2
    entry.bytes(1, name).message(2, flag_value(value));
    message.message(7, entry);  // env_option_overrides
  }
  return message.text();
}

}  // namespace systole::pjrt
