#include "execute/data/formats/parquet/cell_text.h"

#include <chrono>
#include <cmath>

#include "execute/data/formats/record.h"

namespace systole::parquet {
namespace {

__extension__ using Signed = __int128;
__extension__ using Wide = unsigned __int128;

constexpr std::int64_t kSecondsOfDay = 86'400;
constexpr std::int64_t kMostDays = 10'000'000;  // chrono's calendar ends after 32,767 years

std::int64_t per_second(TimeUnit unit) {
  return unit == TimeUnit::millis ? 1000 : unit == TimeUnit::micros ? 1'000'000 : 1'000'000'000;
}

std::string date_text(std::int64_t days) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

// `count` parts of a second after midnight.
std::string time_text(std::int64_t count, TimeUnit unit) {
  const std::int64_t parts = per_second(unit), second = count / parts;
  const int digits = unit == TimeUnit::millis ? 3 : unit == TimeUnit::micros ? 6 : 9;
  return fmt::format("{:02}:{:02}:{:02}.{:0{}}", second / 3600, second / 60 % 60, second % 60, count % parts, digits);
}

Node decimal_node(const Column& column, const Value& value) {
  Signed number = value.integer;
  if (value.kind == Value::Kind::bytes) {  // big-endian
    if (value.bytes.empty() || value.bytes.size() > 16) return bytes_node(value.bytes);
    number = static_cast<signed char>(value.bytes[0]);
    for (const char byte : value.bytes.substr(1)) number = number * 256 + static_cast<unsigned char>(byte);
  }
  const bool negative = number < 0;
  auto left = negative ? ~static_cast<Wide>(number) + 1 : static_cast<Wide>(number);
  std::string digits;
  for (; left > 0 || digits.size() <= static_cast<std::size_t>(column.scale); left /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(left % 10)));
  if (column.scale > 0) digits.insert(digits.size() - static_cast<std::size_t>(column.scale), ".");
  return Node(NodeKind::number, (negative ? "-" : "") + digits);
}

double from_float16(std::string_view bytes) {
  const int bits = static_cast<unsigned char>(bytes[0]) | static_cast<unsigned char>(bytes[1]) << 8;
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? HUGE_VAL : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

std::string uuid_text(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

Node integer_node(const Column& column, std::int64_t value) {
  if (column.type == Physical::boolean) return Node(value != 0);
  switch (column.meaning) {
    case Meaning::unsigned_int:
      return column.type == Physical::int32 ? Node(static_cast<std::uint32_t>(value))
                                            : Node(static_cast<std::uint64_t>(value));
    case Meaning::date:
      if (value < -kMostDays || value > kMostDays) return Node(value);
      return Node(date_text(value));
    case Meaning::time:
      if (value < 0 || value >= kSecondsOfDay * per_second(column.unit)) return Node(value);
      return Node(time_text(value, column.unit));
    case Meaning::timestamp: {
      const std::int64_t day = kSecondsOfDay * per_second(column.unit);
      const std::int64_t days = value / day - (value % day < 0);
      if (days < -kMostDays || days > kMostDays) return Node(value);
      const std::int64_t rest = value % day < 0 ? value % day + day : value % day;
      return Node(date_text(days) + "T" + time_text(rest, column.unit) + (column.utc ? "Z" : ""));
    }
    default: return Node(value);
  }
}

}  // namespace

Node node_of(const Column& column, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: return {};
    case Value::Kind::real:
      // The shortest digits that read back as the same value of its own width.
      if (column.type == Physical::float32 && std::isfinite(value.real))
        return Node(NodeKind::number, fmt::format("{}", static_cast<float>(value.real)));
      return Node(value.real);
    case Value::Kind::integer:
      return column.meaning == Meaning::decimal ? decimal_node(column, value) : integer_node(column, value.integer);
    case Value::Kind::bytes: break;
  }
  switch (column.meaning) {
    case Meaning::decimal: return decimal_node(column, value);
    case Meaning::uuid: return Node(uuid_text(value.bytes));
    case Meaning::float16: return Node(from_float16(value.bytes));
    default: return bytes_node(value.bytes);
  }
}

Node node_of(const Column& column, const Cell& cell) {
  if (cell.null) return {};
  if (!column.list) return node_of(column, cell.values[0]);
  Node list = Node::sequence();
  for (const Value& value : cell.values) list.push(node_of(column, value));
  return list;
}

}  // namespace systole::parquet
