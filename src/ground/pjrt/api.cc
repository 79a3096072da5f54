#include "ground/pjrt/api.h"

#include <span>

namespace systole::pjrt {
namespace {

// absl's status codes (abseil.io/docs/cpp/guides/status-codes), mapped to our kinds.
struct Code {
  const char* name;
  ErrorKind kind;
};
constexpr Code kCodes[] = {
    {"OK", ErrorKind::io},
    {"CANCELLED", ErrorKind::interrupted},
    {"UNKNOWN", ErrorKind::invalid},  // a module that does not parse
    {"INVALID_ARGUMENT", ErrorKind::invalid},
    {"DEADLINE_EXCEEDED", ErrorKind::busy},
    {"NOT_FOUND", ErrorKind::not_found},
    {"ALREADY_EXISTS", ErrorKind::exists},
    {"PERMISSION_DENIED", ErrorKind::io},
    {"RESOURCE_EXHAUSTED", ErrorKind::does_not_fit},
    {"FAILED_PRECONDITION", ErrorKind::invalid},
    {"ABORTED", ErrorKind::interrupted},
    {"OUT_OF_RANGE", ErrorKind::invalid},
    {"UNIMPLEMENTED", ErrorKind::unsupported},
    {"INTERNAL", ErrorKind::io},
    {"UNAVAILABLE", ErrorKind::busy},
    {"DATA_LOSS", ErrorKind::corrupt},
    {"UNAUTHENTICATED", ErrorKind::io},
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string to_string(const NamedValue& named) {
  struct Text {
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(float value) const { return fmt::format("{:g}", value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(const std::vector<std::int64_t>& values) const {
      std::string text = "[";
      for (const std::int64_t value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
      return text + "]";
    }
  };
  return named.name + " = " + std::visit(Text{}, named.value);
}

const NamedValue* find(const std::vector<NamedValue>& values, const std::string& name) {
  for (const NamedValue& value : values)
    if (value.name == name) return &value;
  return nullptr;
}

std::string to_string(ApiVersion version) { return fmt::format("{}.{}", version.major, version.minor); }

Api::Api(const abi::Api* table, std::string path)
    : table_(table),
      path_(std::move(path)),
      name_(file_name(path_)),
      version_{table->version.major, table->version.minor},
      num_functions_((table->head.size - offsetof(abi::Api, functions)) / sizeof(abi::Api::Function)) {}

abi::Api::Function Api::function(int slot) const {
  return static_cast<std::size_t>(slot) < num_functions_ ? table_->functions[slot] : nullptr;
}

Status Api::invoke(int slot, void* args, std::string_view what) const {
  const abi::Api::Function called = function(slot);
  if (called == nullptr)
    return error(ErrorKind::unsupported, "{} (API {}) has no function to {}", name_, to_string(version_), what);
  if (abi::Error* problem = called(args)) return failure(problem, what);
  return {};
}

Error Api::failure(abi::Error* problem, std::string_view what) const {
  abi::ErrorMessage message;
  message.head.size = abi::size_at<abi::ErrorMessage>(version_.minor);
  message.error = problem;
  abi::ErrorCode code;
  code.head.size = abi::size_at<abi::ErrorCode>(version_.minor);
  code.error = problem;
  code.code = 2;
  // The errors of these three calls cannot be reported.
  if (function(abi::ErrorMessage::kSlot) != nullptr) function(abi::ErrorMessage::kSlot)(&message);
  if (function(abi::ErrorCode::kSlot) != nullptr) function(abi::ErrorCode::kSlot)(&code);
  const bool known = code.code >= 0 && static_cast<std::size_t>(code.code) < std::size(kCodes);
  const Code& meaning = kCodes[known ? code.code : 2];
  std::string said = message.text == nullptr ? "(nothing)" : std::string(message.text, message.text_size);
  abi::ErrorDestroy destroy;
  destroy.head.size = abi::size_at<abi::ErrorDestroy>(version_.minor);
  destroy.error = problem;
  if (function(abi::ErrorDestroy::kSlot) != nullptr) function(abi::ErrorDestroy::kSlot)(&destroy);
  return error(meaning.kind, "{} (API {}): {}: {}: {}", name_, to_string(version_), what, meaning.name, said);
}

std::vector<NamedValue> named_values(const abi::NamedValue* values, std::size_t num) {
  std::vector<NamedValue> result;
  for (const abi::NamedValue& value : std::span(values, num)) {
    NamedValue named{std::string(value.name, value.name_size), {}};
    switch (value.type) {
      case abi::NamedValue::text: named.value = std::string(value.as_text, value.value_size); break;
      case abi::NamedValue::whole: named.value = value.as_whole; break;
      case abi::NamedValue::wholes:
        named.value = std::vector<std::int64_t>(value.as_wholes, value.as_wholes + value.value_size);
        break;
      case abi::NamedValue::real: named.value = value.as_real; break;
      case abi::NamedValue::boolean: named.value = value.as_boolean; break;
      default: continue;
    }
    result.push_back(std::move(named));
  }
  return result;
}

std::vector<abi::NamedValue> borrowed(const std::vector<NamedValue>& values) {
  std::vector<abi::NamedValue> result;
  for (const NamedValue& named : values) {
    abi::NamedValue value;
    value.name = named.name.data();
    value.name_size = named.name.size();
    value.value_size = 1;
    if (const auto* text = std::get_if<std::string>(&named.value)) {
      value.type = abi::NamedValue::text;
      value.as_text = text->data();
      value.value_size = text->size();
    } else if (const auto* whole = std::get_if<std::int64_t>(&named.value)) {
      value.type = abi::NamedValue::whole;
      value.as_whole = *whole;
    } else if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&named.value)) {
      value.type = abi::NamedValue::wholes;
      value.as_wholes = wholes->data();
      value.value_size = wholes->size();
    } else if (const auto* real = std::get_if<float>(&named.value)) {
      value.type = abi::NamedValue::real;
      value.as_real = *real;
    } else {
      value.type = abi::NamedValue::boolean;
      value.as_boolean = std::get<bool>(named.value);
    }
    result.push_back(value);
  }
  return result;
}

}  // namespace systole::pjrt
