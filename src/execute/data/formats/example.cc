#include "execute/data/formats/example.h"

#include <algorithm>
#include <bit>

#include "execute/data/formats/wire.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

Error not_an_example(std::string_view why, std::string_view record, const char* at) {
  return error(ErrorKind::corrupt, "the record is no tf.train.Example: {} at its byte {}", why,
               with_commas(static_cast<std::int64_t>(at - record.data())))
      .hinted("`field: .` takes whole records as text");
}

// Calls `use` for each field of `message`, a part of `record`. False in Result: `use` found what cannot be.
template <typename Use>
Status for_each_field(std::string_view message, std::string_view record, Use use) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) TRY(use(field));
  if (!reader.failed()) return Done{};
  return not_an_example("no protobuf field", record, message.data() + reader.offset());
}

// Finds the entries of the map: name, and the bytes of the Feature.
template <typename Use>
Status for_each_entry(std::string_view record, Use use) {
  return for_each_field(record, record, [&](const WireField& features) -> Status {
    if (features.number != 1) return Done{};
    if (features.type != WireType::bytes) return not_an_example("`features` is no message", record, record.data());
    return for_each_field(features.bytes, record, [&](const WireField& entry) -> Status {
      if (entry.number != 1) return Done{};
      if (entry.type != WireType::bytes)
        return not_an_example("a feature is no message", record, features.bytes.data());
      std::string_view name, value;
      TRY(for_each_field(entry.bytes, record, [&](const WireField& part) -> Status {
        if (part.number == 1 && part.type == WireType::bytes) name = part.bytes;
        if (part.number == 2 && part.type == WireType::bytes) value = part.bytes;
        return Done{};
      }));
      return use(name, value);
    });
  });
}

Status read_numbers(const WireField& field, std::string_view record, Feature& feature) {
  const bool floats = feature.kind == Feature::Kind::floats;
  if (field.type == (floats ? WireType::fixed32 : WireType::varint)) {
    if (floats) feature.floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    if (!floats) feature.integers.push_back(static_cast<std::int64_t>(field.value));
    return Done{};
  }
  if (field.type != WireType::bytes) return not_an_example("a number of another type", record, record.data());
  std::string_view packed = field.bytes;
  if (floats && packed.size() % 4 != 0) return not_an_example("a float is cut short", record, packed.data());
  if (floats) {
    feature.floats.resize(feature.floats.size() + packed.size() / 4);
    std::copy_n(packed.data(), packed.size(),
                reinterpret_cast<char*>(feature.floats.data() + feature.floats.size() - packed.size() / 4));
    return Done{};
  }
  std::uint64_t value = 0;
  while (!packed.empty()) {
    if (!take_varint(packed, value)) return not_an_example("an integer is cut short", record, packed.data());
    feature.integers.push_back(static_cast<std::int64_t>(value));
  }
  return Done{};
}

Status read_feature(std::string_view bytes, std::string_view record, Feature& feature) {
  return for_each_field(bytes, record, [&](const WireField& list) -> Status {
    if (list.number < 1 || list.number > 3) return Done{};
    if (list.type != WireType::bytes) return not_an_example("a list is no message", record, bytes.data());
    const auto kind = static_cast<Feature::Kind>(list.number);
    if (kind != feature.kind) feature = {.name = feature.name, .kind = kind, .bytes = {}, .floats = {}, .integers = {}};
    return for_each_field(list.bytes, record, [&](const WireField& value) -> Status {
      if (value.number != 1) return Done{};
      if (kind != Feature::Kind::bytes) return read_numbers(value, record, feature);
      if (value.type != WireType::bytes) return not_an_example("a value is no bytes", record, list.bytes.data());
      feature.bytes.push_back(value.bytes);
      return Done{};
    });
  });
}

std::string names_in(std::string_view record) {
  std::string names;
  const Result<std::vector<Feature>> features = parse_example(record);
  if (!features.ok()) return names;
  for (std::size_t i = 0; i < features->size() && i < 8; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", (*features)[i].name);
  if (features->size() > 8) names += ", ...";
  return names;
}

Error not_one_string(const Feature& feature) {
  std::string what = feature.kind == Feature::Kind::bytes      ? counted(feature.bytes.size(), "byte string")
                     : feature.kind == Feature::Kind::floats   ? counted(feature.floats.size(), "float")
                     : feature.kind == Feature::Kind::integers ? counted(feature.integers.size(), "integer")
                                                               : "nothing";
  return error(ErrorKind::invalid, "feature '{}' of the Example holds {}, not one byte string", feature.name, what)
      .hinted("name a feature that holds the text with `field:`");
}

}  // namespace

Result<std::vector<Feature>> parse_example(std::string_view record) {
  std::vector<Feature> features;
  TRY(for_each_entry(record, [&](std::string_view name, std::string_view value) -> Status {
    Feature feature{.name = name, .kind = Feature::Kind::none, .bytes = {}, .floats = {}, .integers = {}};
    TRY(read_feature(value, record, feature));
    features.push_back(std::move(feature));
    return Done{};
  }));
  std::stable_sort(features.begin(), features.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<Feature> last;
  for (Feature& feature : features) {
    if (!last.empty() && last.back().name == feature.name) last.pop_back();
    last.push_back(std::move(feature));
  }
  return last;
}

Result<std::string_view> bytes_of_example(std::string_view record, std::string_view name) {
  std::optional<std::string_view> found;
  TRY(for_each_entry(record, [&](std::string_view key, std::string_view value) -> Status {
    if (key == name) found = value;
    return Done{};
  }));
  if (!found) {
    const std::string names = names_in(record);
    return error(ErrorKind::invalid, "the Example has no feature '{}'{}", name,
                 names.empty() ? "; it is empty" : "; it has " + names)
        .hinted("`field:` names the feature that holds the text; `field: .` takes whole records");
  }
  Feature feature{.name = name, .kind = Feature::Kind::none, .bytes = {}, .floats = {}, .integers = {}};
  TRY(read_feature(*found, record, feature));
  if (feature.kind != Feature::Kind::bytes || feature.bytes.size() != 1) return not_one_string(feature);
  return feature.bytes.front();
}

Result<std::string_view> field_of_example(const DataRecord& record, std::string_view name, const std::string& shown) {
  if (name == kWholeRecord) return record.bytes;
  Result<std::string_view> bytes = bytes_of_example(record.bytes, name);
  if (bytes.ok()) return bytes;
  return at_record(std::move(bytes).error(), {shown, record.index, record.byte});
}

std::string make_example(std::span<const RecordField> fields) {
  std::vector<RecordField> sorted(fields.begin(), fields.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string features, entry, feature, list, example;
  for (const RecordField& field : sorted) {
    for (std::string* part : {&entry, &feature, &list}) part->clear();
    put_bytes(list, 1, field.bytes);
    put_bytes(feature, 1, list);
    put_bytes(entry, 1, field.name);
    put_bytes(entry, 2, feature);
    put_bytes(features, 1, entry);
  }
  put_bytes(example, 1, features);
  return example;
}

}  // namespace systole
