// Field numbers: openxla/xla xla/service/hlo.proto (HloModuleProtoWithConfig, HloModuleProto, HloComputationProto,
// HloInstructionProto, HloScheduleProto), xla/xla_data.proto (ShapeProto, PrimitiveType, OpMetadata, ReplicaGroup,
// CollectiveDeviceListProto, LiteralProto, Window,
// ConvolutionDimensionNumbers, DotDimensionNumbers), as of 2026-06.

#include "ground/pjrt/hlo_module.h"

#include "ground/pjrt/wire.h"

namespace systole::pjrt {
namespace {

constexpr int kDeepest = 16;                // nesting of tuples; programs have only a few levels
constexpr std::size_t kLongestNumber = 10;  // bytes of a variable-length integer

std::optional<DType> dtype_of_primitive(std::int64_t type) {
  switch (type) {
    case 1: return DType::boolean;
    case 2: return DType::i8;
    case 4: return DType::i32;
    case 5: return DType::i64;
    case 6: return DType::u8;
    case 8: return DType::u32;
    case 9: return DType::u64;
    case 10: return DType::f16;
    case 11: return DType::f32;
    case 12: return DType::f64;
    case 16: return DType::bf16;
    case 19: return DType::f8e5m2;
    case 20: return DType::f8e4m3;
    default: return std::nullopt;
  }
}

// Repeated integers are in one packed field or in many fields.
Status add_integers(const WireField& field, std::vector<std::int64_t>& values) {
  if (field.kind != WireKind::bytes) {
    values.push_back(TRY(field.integer()));
    return {};
  }
  for (const std::int64_t value : TRY(unpacked(field.content))) values.push_back(value);
  return {};
}

// Calls `take` for each field of a message.
template <typename Take>
Status each_field(std::string_view message, Take take) {
  WireReader reader(message);
  while (const std::optional<WireField> field = TRY(reader.next())) TRY(take(*field));
  return {};
}

Status set_text(const WireField& field, std::string& text) {
  text = std::string(TRY(field.bytes()));
  return {};
}
template <typename Number>
Status set_integer(const WireField& field, Number& number) {
  number = TRY(field.integer());
  return {};
}

// Checks that the value's byte count cannot overflow.
Status check_dims(const Shape& dims) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    if (size < 0) return error(ErrorKind::corrupt, "a shape with a dim of {}", size);
    if (size > 0 && elements > kMost / size) return error(ErrorKind::corrupt, "a shape of more than 2^60 elements");
    elements *= size;
  }
  return {};
}

Status read_shape(std::string_view message, HloShape& shape, int depth = 0) {
  if (depth > kDeepest) return error(ErrorKind::corrupt, "a shape of more than {} tuples in each other", kDeepest);
  TRY(each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 2: shape.dtype = dtype_of_primitive(TRY(field.integer())); return {};
      case 3: return add_integers(field, shape.dims);
      case 4: return read_shape(TRY(field.bytes()), shape.parts.emplace_back(), depth + 1);
      default: return {};
    }
  }));
  return check_dims(shape.dims);
}

// Reads a LiteralProto of one integer; ignores others. 8-bit numbers are stored as bytes.
Status read_constant(std::string_view message, std::optional<std::int64_t>& constant) {
  HloShape shape;
  std::vector<std::int64_t> values;
  TRY(each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 1: return read_shape(TRY(field.bytes()), shape);
      case 2:  // preds
      case 4:
      case 5:
      case 6:
      case 7:  // s32s, s64s, u32s, u64s
        if (field.kind == WireKind::bytes && field.content.size() > kLongestNumber) return {};  // more than one number
        return add_integers(field, values);
      case 3:
      case 15: {  // u8s, s8s
        const std::string_view bytes = TRY(field.bytes());
        if (bytes.size() == 1)
          values.push_back(field.number == 3 ? static_cast<unsigned char>(bytes[0])
                                             : static_cast<signed char>(bytes[0]));
        return {};
      }
      default: return {};
    }
  }));
  if (shape.dims.empty() && shape.parts.empty() && values.size() == 1) constant = values.front();
  return {};
}

Status read_group(std::string_view message, HloInstruction& result) {  // ReplicaGroup
  std::vector<std::int64_t>& group = result.groups.emplace_back();
  return each_field(message, [&](const WireField& field) -> Status {
    return field.number == 1 ? add_integers(field, group) : Status();
  });
}

// IotaReplicaGroupListProto: a number of groups of equal size.
Status read_counted_groups(std::string_view message, HloInstruction& result) {
  return each_field(message, [&](const WireField& field) -> Status {
    return field.number == 2 ? set_integer(field, result.group_size) : Status();
  });
}

// CollectiveDeviceListProto: groups listed, or as an iota.
Status read_device_list(std::string_view message, HloInstruction& result) {
  result.groups.clear();  // older compilers write them twice
  return each_field(message, [&](const WireField& field) -> Status {
    if (field.number == 1) return read_group(TRY(field.bytes()), result);
    return field.number == 2 ? read_counted_groups(TRY(field.bytes()), result) : Status();
  });
}

// MeshAxesReplicaGroupListProto: groups along axes of a mesh, or along parts of axes.
Status read_mesh_groups(std::string_view message, HloInstruction& result) {
  std::vector<std::int64_t> sizes;
  std::int64_t devices = 1;
  return each_field(message, [&](const WireField& field) -> Status {
    if (field.number == 1) {  // MeshProto, of MeshAxis
      return each_field(TRY(field.bytes()), [&](const WireField& axis) -> Status {
        if (axis.number != 1) return {};
        std::int64_t& size = sizes.emplace_back(1);
        return each_field(TRY(axis.bytes()), [&](const WireField& inner) -> Status {
          return inner.number == 2 ? set_integer(inner, size) : Status();
        });
      });
    }
    if (field.number != 2) return {};
    std::int64_t index = 0, part = 0;  // AxisRefProto
    TRY(each_field(TRY(field.bytes()), [&](const WireField& inner) -> Status {
      if (inner.number == 1) return set_integer(inner, index);
      if (inner.number != 2) return {};
      return each_field(TRY(inner.bytes()), [&](const WireField& sub) -> Status {
        return sub.number == 2 ? set_integer(sub, part) : Status();
      });
    }));
    if (index < 0 || index >= static_cast<std::int64_t>(sizes.size()))
      return error(ErrorKind::corrupt, "'{}' lies along axis {} of {}", result.name, index, sizes.size());
    if (__builtin_mul_overflow(devices, part > 0 ? part : sizes[static_cast<std::size_t>(index)], &devices))
      return error(ErrorKind::corrupt, "'{}' has more devices than there are", result.name);
    result.group_size = devices;
    return {};
  });
}

Status read_window(std::string_view message, std::vector<HloWindow>& window) {
  return each_field(message, [&](const WireField& field) -> Status {
    if (field.number != 1) return {};
    HloWindow& dim = window.emplace_back();
    return each_field(TRY(field.bytes()), [&](const WireField& inner) -> Status {
      switch (inner.number) {
        case 1: return set_integer(inner, dim.size);
        case 2: return set_integer(inner, dim.stride);
        case 3: return set_integer(inner, dim.padding_low);
        case 4: return set_integer(inner, dim.padding_high);
        case 5: return set_integer(inner, dim.dilation);
        case 6: return set_integer(inner, dim.base_dilation);
        default: return {};
      }
    });
  });
}

Status read_convolution(std::string_view message, HloConvolution& convolution) {
  return each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 7: return set_integer(field, convolution.input_batch);
      case 8: return set_integer(field, convolution.input_feature);
      case 10: return set_integer(field, convolution.output_feature);
      case 11: return add_integers(field, convolution.input_spatial);
      case 12: return add_integers(field, convolution.output_spatial);
      default: return {};
    }
  });
}

Status read_instruction(std::string_view message, HloInstruction& result) {
  return each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 1: return set_text(field, result.name);
      case 2: return set_text(field, result.opcode);
      case 3: return read_shape(TRY(field.bytes()), result.shape);
      case 7:  // OpMetadata
        return each_field(TRY(field.bytes()), [&](const WireField& inner) -> Status {
          return inner.number == 2 ? set_text(inner, result.source) : Status();
        });
      case 8: return read_constant(TRY(field.bytes()), result.constant);
      case 9: return set_integer(field, result.parameter_number);
      case 11: return set_text(field, result.fusion_kind);
      case 13: return set_integer(field, result.tuple_index);
      case 15: return read_window(TRY(field.bytes()), result.window);
      case 16: return read_convolution(TRY(field.bytes()), result.convolution);
      case 26: return set_integer(field, result.channel);
      case 28: return set_text(field, result.custom_call_target);
      case 30:  // DotDimensionNumbers
        return each_field(TRY(field.bytes()), [&](const WireField& inner) -> Status {
          return inner.number == 1 ? add_integers(inner, result.contracted) : Status();
        });
      case 35: return set_integer(field, result.id);
      case 36: return add_integers(field, result.operands);
      case 38: return add_integers(field, result.called);
      case 43: return set_text(field, result.backend_config);
      case 49: return read_group(TRY(field.bytes()), result);
      case 50: return set_integer(field, result.convolution.feature_groups);
      case 58: return set_integer(field, result.convolution.batch_groups);
      case 63: return set_text(field, result.comparison);
      case 87: return read_device_list(TRY(field.bytes()), result);
      case 93: return read_mesh_groups(TRY(field.bytes()), result);
      case 92: return read_counted_groups(TRY(field.bytes()), result);
      default: return {};
    }
  });
}

Status read_computation(std::string_view message, HloComputation& result) {
  return each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 1: return set_text(field, result.name);
      case 2: return read_instruction(TRY(field.bytes()), result.instructions.emplace_back());
      case 5: return set_integer(field, result.id);
      case 6: return set_integer(field, result.root);
      default: return {};
    }
  });
}

// A map: entries with key 1 and value 2, whose field 1 is instruction_ids.
Status read_schedule(std::string_view message, HloModule& module) {
  return each_field(message, [&](const WireField& field) -> Status {
    if (field.number != 1) return {};
    std::int64_t computation = 0;
    std::vector<std::int64_t> order;
    TRY(each_field(TRY(field.bytes()), [&](const WireField& inner) -> Status {
      if (inner.number == 1) return set_integer(inner, computation);
      if (inner.number != 2) return {};
      return each_field(TRY(inner.bytes()), [&](const WireField& ids) -> Status {
        return ids.number == 1 ? add_integers(ids, order) : Status();
      });
    }));
    module.schedule[computation] = std::move(order);
    return {};
  });
}

Result<HloModule> read_module(std::string_view message) {
  HloModule module;
  TRY(each_field(message, [&](const WireField& field) -> Status {
    switch (field.number) {
      case 1: return set_text(field, module.name);
      case 3: {
        HloComputation computation;
        TRY(read_computation(TRY(field.bytes()), computation));
        const std::int64_t id = computation.id;
        module.computations[id] = std::move(computation);
        return {};
      }
      case 6: return set_integer(field, module.entry);
      case 7: return read_schedule(TRY(field.bytes()), module);
      default: return {};
    }
  }));
  const auto there = [&](std::int64_t id) { return module.computations.count(id) != 0; };
  if (!there(module.entry)) return error(ErrorKind::corrupt, "the module '{}' has no entry", module.name);
  for (const auto& [id, computation] : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      for (const std::int64_t called : instruction.called)
        if (!there(called))
          return error(ErrorKind::corrupt, "'{}' calls computation {}, which is not there", instruction.name, called);
  return module;
}

}  // namespace

Bytes HloShape::bytes() const {
  Bytes sum = dtype ? bytes_of(*dtype, dims) : Bytes(0);
  for (const HloShape& part : parts) sum += part.bytes();
  return sum;
}

Result<HloModule> read_hlo(const OptimizedModule& module) {
  if (module.format == "hlo") return read_module(module.bytes);
  if (module.format != "hlo_with_config")
    return error(ErrorKind::unsupported, "a module of the format '{}' cannot be read", module.format);
  std::string_view inner;
  TRY(each_field(module.bytes, [&](const WireField& field) -> Status {
    if (field.number == 1) inner = TRY(field.bytes());
    return {};
  }));
  return read_module(inner);
}

}  // namespace systole::pjrt
