#include "execute/data/formats/parquet/decoder.h"

#include <cstring>
#include <type_traits>

#include "execute/data/formats/parquet/bits.h"
#include "execute/data/formats/parquet/delta.h"

namespace systole::parquet {
namespace {

using Bytes = std::span<const std::byte>;

constexpr const char* kShort = "it has fewer values than it says";
constexpr const char* kLong = "a value is longer than the bytes that are left";
// Lengths are read before the bytes that they are of, all at once.
constexpr std::uint64_t kMostLengths = std::uint64_t{1} << 24;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

template <typename T>
class PlainNumbers : public Decoder {
 public:
  explicit PlainNumbers(Bytes bytes) : bytes_(bytes) {}

  const char* decode(std::span<Value> into) override {
    if (bytes_.size() / sizeof(T) < into.size()) return kShort;
    for (std::size_t i = 0; i < into.size(); ++i) {
      T value;
      std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_floating_point_v<T>) {
        into[i] = Value::of(static_cast<double>(value));
      } else {
        into[i] = Value::of(static_cast<std::int64_t>(value));
      }
    }
    bytes_ = bytes_.subspan(into.size() * sizeof(T));
    return nullptr;
  }

 private:
  Bytes bytes_;
};

class PlainBooleans : public Decoder {
 public:
  explicit PlainBooleans(Bytes bytes) : bytes_(bytes) {}

  const char* decode(std::span<Value> into) override {
    if (bytes_.size() * 8 - bit_ < into.size()) return kShort;
    for (Value& value : into) value = Value::of(static_cast<std::int64_t>(bits_at(bytes_, bit_++, 1)));
    return nullptr;
  }

 private:
  Bytes bytes_;
  std::size_t bit_ = 0;
};

class PlainBytes : public Decoder {
 public:
  explicit PlainBytes(Bytes bytes) : bytes_(bytes) {}

  const char* decode(std::span<Value> into) override {
    for (Value& value : into) {
      if (bytes_.size() < 4) return kShort;
      std::uint32_t size = 0;
      std::memcpy(&size, bytes_.data(), 4);
      if (size > bytes_.size() - 4) return kLong;
      value = Value::of(text_of(bytes_.subspan(4, size)));
      bytes_ = bytes_.subspan(4 + size);
    }
    return nullptr;
  }

 private:
  Bytes bytes_;
};

class PlainFixed : public Decoder {
 public:
  PlainFixed(Bytes bytes, int width) : bytes_(bytes), width_(static_cast<std::size_t>(width)) {}

  const char* decode(std::span<Value> into) override {
    if (bytes_.size() / width_ < into.size()) return kShort;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = Value::of(text_of(bytes_.subspan(i * width_, width_)));
    bytes_ = bytes_.subspan(into.size() * width_);
    return nullptr;
  }

 private:
  Bytes bytes_;
  std::size_t width_;
};

class RunBooleans : public Decoder {
 public:
  explicit RunBooleans(Bytes bytes) : runs_(bytes, 1) {}

  const char* decode(std::span<Value> into) override {
    flags_.resize(into.size());
    if (!runs_.read(std::span(flags_))) return kShort;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = Value::of(std::int64_t{flags_[i]});
    return nullptr;
  }

 private:
  RunReader runs_;
  std::vector<std::uint8_t> flags_;
};

class FromDictionary : public Decoder {
 public:
  FromDictionary(Bytes bytes, int width, std::span<const Value> dictionary)
      : runs_(bytes, width), dictionary_(dictionary) {}

  const char* decode(std::span<Value> into) override {
    indices_.resize(into.size());
    if (!runs_.read(std::span(indices_))) return kShort;
    for (std::size_t i = 0; i < into.size(); ++i) {
      if (indices_[i] >= dictionary_.size()) return "a value is beyond the dictionary's end";
      into[i] = dictionary_[indices_[i]];
    }
    return nullptr;
  }

 private:
  RunReader runs_;
  std::span<const Value> dictionary_;
  std::vector<std::uint32_t> indices_;
};

class DeltaIntegers : public Decoder {
 public:
  DeltaIntegers(DeltaReader values, bool narrow) : values_(values), narrow_(narrow) {}

  const char* decode(std::span<Value> into) override {
    numbers_.resize(into.size());
    if (const char* why = values_.read(numbers_); why != nullptr) return why;
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] = Value::of(narrow_ ? std::int64_t{static_cast<std::int32_t>(numbers_[i])} : numbers_[i]);
    return nullptr;
  }

 private:
  DeltaReader values_;
  bool narrow_;
  std::vector<std::int64_t> numbers_;
};

// All values of a delta-packed list of lengths, and what stands behind it.
const char* read_lengths(Bytes& bytes, std::int64_t values, std::vector<std::int64_t>& lengths) {
  DeltaReader reader;
  if (const char* why = reader.open(bytes); why != nullptr) return why;
  if (reader.count() > kMostLengths) return "it has more than 16,777,216 lengths";
  if (reader.count() > static_cast<std::uint64_t>(values)) return "it has more lengths than values";
  while (reader.left() > 0) {  // in steps, so that a false count takes no memory
    const std::size_t before = lengths.size();
    lengths.resize(before + std::min<std::uint64_t>(reader.left(), 4096));
    if (const char* why = reader.read(std::span(lengths).subspan(before)); why != nullptr) return why;
  }
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > INT32_MAX) return "a length is negative or beyond 2 GiB";
  }
  bytes = reader.rest();
  return nullptr;
}

class DeltaLengthBytes : public Decoder {
 public:
  const char* open(Bytes bytes, std::int64_t values) {
    bytes_ = bytes;
    return read_lengths(bytes_, values, lengths_);
  }

  const char* decode(std::span<Value> into) override {
    if (lengths_.size() - next_ < into.size()) return kShort;
    for (Value& value : into) {
      const auto size = static_cast<std::size_t>(lengths_[next_++]);
      if (size > bytes_.size()) return kLong;
      value = Value::of(text_of(bytes_.first(size)));
      bytes_ = bytes_.subspan(size);
    }
    return nullptr;
  }

 private:
  Bytes bytes_;
  std::vector<std::int64_t> lengths_;
  std::size_t next_ = 0;
};

// Each value is a prefix of the one before and a suffix of its own.
class DeltaBytes : public Decoder {
 public:
  DeltaBytes(std::size_t most, int width) : most_(most), width_(width) {}

  const char* open(Bytes bytes, std::int64_t values) {
    if (const char* why = read_lengths(bytes, values, prefixes_); why != nullptr) return why;
    return suffixes_.open(bytes, values);
  }

  const char* decode(std::span<Value> into) override {
    if (prefixes_.size() - next_ < into.size()) return kShort;
    if (const char* why = suffixes_.decode(into); why != nullptr) return why;
    std::size_t size = 0;
    for (std::size_t i = 0; i < into.size(); ++i) {
      size += static_cast<std::size_t>(prefixes_[next_ + i]) + into[i].bytes.size();
      if (size > most_) return "its DELTA_BYTE_ARRAY values grow beyond the limit of a page";
    }
    made_.clear();
    made_.reserve(size);  // so that views of it stay
    std::string_view before = last_;
    for (Value& value : into) {
      const auto prefix = static_cast<std::size_t>(prefixes_[next_++]);
      if (prefix > before.size()) return "a value shares more bytes with the one before than that has";
      if (width_ > 0 && prefix + value.bytes.size() != static_cast<std::size_t>(width_))
        return "a value is of another length than its column's";
      const std::size_t begin = made_.size();
      made_.append(before.substr(0, prefix)).append(value.bytes);
      before = value.bytes = std::string_view(made_).substr(begin);
    }
    last_ = std::string(before);
    return nullptr;
  }

 private:
  std::size_t most_;
  int width_;
  std::vector<std::int64_t> prefixes_;
  DeltaLengthBytes suffixes_;
  std::size_t next_ = 0;
  std::string last_, made_;  // the value before the next; the last call's values
};

// Byte b of all values, then byte b + 1 of all.
class SplitStreams : public Decoder {
 public:
  SplitStreams(Bytes bytes, const Column& column, std::size_t width)
      : bytes_(bytes), type_(column.type), width_(width), count_(bytes.size() / width) {}

  const char* decode(std::span<Value> into) override {
    if (count_ - next_ < into.size()) return kShort;
    made_.resize(into.size() * width_);
    for (std::size_t b = 0; b < width_; ++b) {
      const std::byte* stream = bytes_.data() + b * count_ + next_;
      for (std::size_t i = 0; i < into.size(); ++i) made_[i * width_ + b] = stream[i];
    }
    next_ += into.size();
    switch (type_) {
      case Physical::int32: return PlainNumbers<std::int32_t>(made_).decode(into);
      case Physical::int64: return PlainNumbers<std::int64_t>(made_).decode(into);
      case Physical::float32: return PlainNumbers<float>(made_).decode(into);
      case Physical::float64: return PlainNumbers<double>(made_).decode(into);
      default: return PlainFixed(made_, static_cast<int>(width_)).decode(into);
    }
  }

 private:
  Bytes bytes_;
  Physical type_;
  std::size_t width_, count_, next_ = 0;
  std::vector<std::byte> made_;
};

using Made = Result<std::unique_ptr<Decoder>>;

template <typename T, typename... Args>
Made made(Args&&... args) {
  return Made(std::make_unique<T>(std::forward<Args>(args)...));
}

Error corrupt(const char* why) { return error(ErrorKind::corrupt, "{}", why); }

Made plain(const Column& column, Bytes bytes) {
  switch (column.type) {
    case Physical::boolean: return made<PlainBooleans>(bytes);
    case Physical::int32: return made<PlainNumbers<std::int32_t>>(bytes);
    case Physical::int64: return made<PlainNumbers<std::int64_t>>(bytes);
    case Physical::float32: return made<PlainNumbers<float>>(bytes);
    case Physical::float64: return made<PlainNumbers<double>>(bytes);
    case Physical::bytes: return made<PlainBytes>(bytes);
    case Physical::fixed: return made<PlainFixed>(bytes, column.width);
    case Physical::int96: break;
  }
  return error(ErrorKind::unsupported, "values of {} are not read", name_of(column.type));
}

Made dictionary_decoder(Bytes bytes, std::span<const Value> dictionary) {
  if (bytes.empty()) return made<FromDictionary>(bytes, 0, dictionary);
  const int width = std::to_integer<int>(bytes[0]);
  if (width > 32) return corrupt("its indices have more than 32 bits");
  return made<FromDictionary>(bytes.subspan(1), width, dictionary);
}

template <typename T>
Made opened(std::unique_ptr<T> decoder, Bytes bytes, std::int64_t values) {
  if (const char* why = decoder->open(bytes, values); why != nullptr) return corrupt(why);
  return Made(std::move(decoder));
}

Made delta_integers(const Column& column, Bytes bytes) {
  DeltaReader values;
  if (const char* why = values.open(bytes); why != nullptr) return corrupt(why);
  return made<DeltaIntegers>(values, column.type == Physical::int32);
}

Made split_streams(const Column& column, Bytes bytes) {
  const bool wide = column.type == Physical::int64 || column.type == Physical::float64;
  const std::size_t width = column.type == Physical::fixed ? static_cast<std::size_t>(column.width) : wide ? 8 : 4;
  if (bytes.size() % width != 0) return corrupt("its streams are not of one length");
  return made<SplitStreams>(bytes, column, width);
}

Made run_booleans(Bytes bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < 4) return corrupt(kShort);
  std::memcpy(&size, bytes.data(), 4);
  if (size > bytes.size() - 4) return corrupt(kShort);
  return made<RunBooleans>(bytes.subspan(4, size));
}

}  // namespace

Made make_decoder(const Column& column, Encoding encoding, Bytes bytes, std::span<const Value> dictionary,
                  std::int64_t values, std::size_t most) {
  const Physical type = column.type;
  const bool integer = type == Physical::int32 || type == Physical::int64;
  switch (encoding) {
    case Encoding::plain: return plain(column, bytes);
    case Encoding::plain_dictionary:
    case Encoding::dictionary:
      if (type != Physical::boolean) return dictionary_decoder(bytes, dictionary);
      break;
    case Encoding::rle:
      if (type == Physical::boolean) return run_booleans(bytes);
      break;
    case Encoding::delta_binary_packed:
      if (integer) return delta_integers(column, bytes);
      break;
    case Encoding::delta_length_byte_array:
      if (type == Physical::bytes) return opened(std::make_unique<DeltaLengthBytes>(), bytes, values);
      break;
    case Encoding::delta_byte_array:
      if (type == Physical::bytes || type == Physical::fixed)
        return opened(std::make_unique<DeltaBytes>(most, column.width), bytes, values);
      break;
    case Encoding::byte_stream_split:
      if (integer || type == Physical::float32 || type == Physical::float64 || type == Physical::fixed)
        return split_streams(column, bytes);
      break;
    default: break;
  }
  return error(ErrorKind::unsupported, "{} in the encoding {} is not read", name_of(type), name_of(encoding));
}

}  // namespace systole::parquet
