#include "describe/stablehlo/builder.h"

#include <fmt/ranges.h>

#include <array>

#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

const char* element_text(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::f8e4m3: return "f8E4M3FN";
    case DType::f8e5m2: return "f8E5M2";
    case DType::i8: return "i8";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "ui8";
    case DType::u32: return "ui32";
    case DType::u64: return "ui64";
    case DType::boolean: return "i1";
  }
  return "";
}

const char* comparison_type(DType dtype) {
  if (is_float(dtype)) return "FLOAT";
  return dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64 ? "SIGNED" : "UNSIGNED";
}

}  // namespace

std::string type_text(const Type& type) {
  std::string text = "tensor<";
  for (const std::int64_t size : type.shape) {
    text += std::to_string(size);
    text += 'x';
  }
  text += element_text(type.dtype);
  text += '>';
  return text;
}

std::string mlir_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f) {
      out += fmt::format("\\{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

Builder::Builder(std::string& text, int indent)
    : text_(&text), indent_(indent), numbering_(std::make_shared<Numbering>()) {}

Builder::Builder(Builder& around, Inside)
    : text_(around.text_), indent_(around.indent_ + 2), place_(around.place_), numbering_(around.numbering_) {}

void Builder::set_place(std::string place) { place_ = std::move(place); }

std::string Builder::fresh() { return "%" + std::to_string(numbering_->next_name++); }

void Builder::indent() { text_->append(static_cast<std::size_t>(2 * indent_), ' '); }

// --- lines

void Builder::begin(std::string_view results, std::string_view op, std::span<const Ssa> operands) {
  indent();
  if (!results.empty()) {
    *text_ += results;
    *text_ += " = ";
  }
  *text_ += '"';
  if (op.find('.') == std::string_view::npos) *text_ += "stablehlo.";
  *text_ += op;
  *text_ += "\"(";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) *text_ += ", ";
    *text_ += operands[i].name;
  }
  *text_ += ')';
}

void Builder::end(std::string_view attrs, std::span<const Ssa> operands, std::span<const Type> results) {
  if (!attrs.empty()) {
    *text_ += " {";
    *text_ += attrs;
    *text_ += '}';
  }
  *text_ += " : (";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) *text_ += ", ";
    *text_ += type_text(operands[i].type);
  }
  *text_ += ") -> ";
  if (results.size() != 1) *text_ += '(';
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i > 0) *text_ += ", ";
    *text_ += type_text(results[i]);
  }
  if (results.size() != 1) *text_ += ')';
  if (!place_.empty()) {
    *text_ += " loc(";
    *text_ += mlir_string(place_);
    *text_ += ')';
  }
  *text_ += '\n';
}

Ssa Builder::line(std::string_view op, std::span<const Ssa> operands, std::string_view attrs, const Type& result) {
  Ssa made{fresh(), result};
  begin(made.name, op, operands);
  end(attrs, operands, std::span(&result, 1));
  return made;
}

void Builder::give(std::string_view terminator, std::span<const Ssa> values) {
  begin("", terminator, values);
  end("", values, {});
}

// --- elementwise

Ssa Builder::unary(std::string_view op, const Ssa& x) { return line(op, std::array{x}, "", x.type); }

Ssa Builder::binary(std::string_view op, const Ssa& a, const Ssa& b) {
  CHECK(a.type == b.type, "{} of {} and {}", op, to_string(a.type), to_string(b.type));
  return line(op, std::array{a, b}, "", a.type);
}

Ssa Builder::compare(std::string_view direction, const Ssa& a, const Ssa& b) {
  CHECK(a.type == b.type, "{} of {} and {}", direction, to_string(a.type), to_string(b.type));
  return line("compare", std::array{a, b},
              fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = "
                          "#stablehlo<comparison_type {}>",
                          direction, comparison_type(a.type.dtype)),
              a.type.with(DType::boolean));
}

Ssa Builder::select(const Ssa& pred, const Ssa& a, const Ssa& b) {
  CHECK(a.type == b.type && pred.type.dtype == DType::boolean, "select of {}, {} and {}", to_string(pred.type),
        to_string(a.type), to_string(b.type));
  return line("select", std::array{pred, a, b}, "", a.type);
}

Ssa Builder::convert(const Ssa& x, DType dtype) {
  return x.type.dtype == dtype ? x : line("convert", std::array{x}, "", x.type.with(dtype));
}

Ssa Builder::bitcast(const Ssa& x, const Type& type) { return line("bitcast_convert", std::array{x}, "", type); }

Ssa Builder::is_finite(const Ssa& x) { return line("is_finite", std::array{x}, "", x.type.with(DType::boolean)); }

std::vector<Ssa> Builder::custom_call(std::string_view target, std::span<const Ssa> operands,
                                      std::span<const Type> results, std::string_view backend_config,
                                      std::span<const std::vector<int>> result_layouts) {
  const auto layout = [](const std::vector<int>& dims) {
    return fmt::format("dense<[{}]> : tensor<{}xindex>", fmt::join(dims, ", "), dims.size());
  };
  const auto row_major = [&](const Type& type) {
    std::vector<int> dims;
    for (int d = type.ndim(); d-- > 0;) dims.push_back(d);
    return layout(dims);
  };
  std::string takes, gives;
  for (const Ssa& operand : operands) takes += (takes.empty() ? "" : ", ") + row_major(operand.type);
  for (std::size_t i = 0; i < results.size(); ++i)
    gives += (i == 0 ? "" : ", ") + (result_layouts.empty() ? row_major(results[i]) : layout(result_layouts[i]));
  const std::string name = fresh();
  std::vector<Ssa> made;
  for (std::size_t i = 0; i < results.size(); ++i)
    made.push_back({results.size() == 1 ? name : fmt::format("{}#{}", name, i), results[i]});
  begin(results.empty()       ? ""
        : results.size() == 1 ? name
                              : fmt::format("{}:{}", name, results.size()),
        "custom_call", operands);
  end(fmt::format("call_target_name = {}, backend_config = {}, api_version = 2 : i32, operand_layouts = [{}], "
                  "result_layouts = [{}]",
                  mlir_string(target), mlir_string(backend_config), takes, gives),
      operands, results);
  return made;
}

}  // namespace systole::stablehlo
