#include "execute/data/formats/mds_columns.h"

#include <charconv>
#include <cstring>

namespace systole {
namespace {

template <typename T>
Result<std::string_view> as_text(std::string_view value, std::string& scratch) {
  T number;
  std::memcpy(&number, value.data(), sizeof number);
  scratch = fmt::format("{}", number);
  return std::string_view(scratch);
}

template <typename T>
Result<std::string_view> as_bytes(std::string_view text, std::string& scratch) {
  T number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size())
    return error(ErrorKind::invalid, "'{}' is no number of the column's type", text.substr(0, 100));
  scratch.assign(reinterpret_cast<const char*>(&number), sizeof number);
  return std::string_view(scratch);
}

// One type of number: its names in MDS, size and conversions.
struct NumberType {
  std::string_view name;
  std::int64_t size;
  Result<std::string_view> (*decode)(std::string_view, std::string&);
  Result<std::string_view> (*encode)(std::string_view, std::string&);
};
template <typename T>
constexpr NumberType number_type(std::string_view name) {
  return {name, sizeof(T), as_text<T>, as_bytes<T>};
}
constexpr NumberType kNumbers[] = {
    number_type<std::int64_t>("int"),     number_type<std::int8_t>("int8"),     number_type<std::int16_t>("int16"),
    number_type<std::int32_t>("int32"),   number_type<std::int64_t>("int64"),   number_type<std::uint8_t>("uint8"),
    number_type<std::uint16_t>("uint16"), number_type<std::uint32_t>("uint32"), number_type<std::uint64_t>("uint64"),
    number_type<float>("float32"),        number_type<double>("float64"),
};
const NumberType* number_of(std::string_view encoding) {
  for (const NumberType& type : kNumbers)
    if (type.name == encoding) return &type;
  return nullptr;
}

// Runs of bytes of any size; those with a ':' have a dtype and perhaps a shape.
constexpr std::string_view kRuns[] = {"bytes",     "str",        "json",      "jpeg",        "png",        "pil",
                                      "ndarray",   "str_int",    "str_float", "str_decimal", "jpeg_array", "jpegarray",
                                      "list[pil]", "list[jpeg]", "list[png]", "float16"};

}  // namespace

Result<std::int64_t> size_of_mds(std::string_view encoding) {
  if (const NumberType* type = number_of(encoding)) return type->size;
  if (encoding == "float16") return std::int64_t{2};
  const std::string_view name = encoding.substr(0, encoding.find(':'));
  for (const std::string_view run : kRuns)
    if (run == name) return std::int64_t{-1};
  if (name == "pkl")
    return error(ErrorKind::unsupported, "a column of pickles: reading one runs what it says")
        .hinted("write the column as str, bytes or json");
  return error(ErrorKind::unsupported, "the encoding '{}' is not known", encoding.substr(0, 100))
      .hinted("write the column as str, bytes, json, int or float64");
}

Result<std::string_view> decode_mds(std::string_view encoding, std::string_view value, std::string& scratch) {
  if (const NumberType* type = number_of(encoding)) return type->decode(value, scratch);
  if (Result<std::int64_t> known = size_of_mds(encoding); !known.ok()) return std::move(known).error();
  return value;
}

Result<std::string_view> encode_mds(std::string_view encoding, std::string_view value, std::string& scratch) {
  if (const NumberType* type = number_of(encoding)) return type->encode(value, scratch);
  return value;
}

}  // namespace systole
