#include "execute/weights/import.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "ground/base/errors.h"
#include "ground/base/nearest.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

constexpr std::int64_t kPartBytes = std::int64_t{256} << 10;
constexpr std::size_t kMostTold = 12;

bool is_taken(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

std::string type_text(DType dtype, const Shape& shape) { return fmt::format("{}{}", name_of(dtype), to_string(shape)); }

// Collects errors and makes only the first kMostTold: hints cost time, and there may be as many errors as names in the
// files.
class Wrongs {
 public:
  void add(const std::function<Error()>& make) {
    if (++count_ <= kMostTold) errors_.push_back(make());
  }
  Status finish() && {
    if (errors_.empty()) return {};
    if (count_ > kMostTold) errors_.push_back(error(ErrorKind::invalid, "and {} more tensors", count_ - kMostTold));
    return together(std::move(errors_));
  }

 private:
  std::vector<Error> errors_;
  std::size_t count_ = 0;
};

bool is_empty_name(const NameMap& map, const std::string& name) {
  if (std::find(map.copies.begin(), map.copies.end(), name) != map.copies.end()) return true;
  return std::any_of(map.empty.begin(), map.empty.end(), [&](const std::string& end) { return name.ends_with(end); });
}

// Maps elements of a logical tensor to offsets in the held part.
class Held {
 public:
  explicit Held(const ParameterPlace& place) : part_(place.part) {
    if (!part_) return;
    whole_ = strides_of(place.shape);
    strides_ = strides_of(part_->held.shape());
    shape_ = place.shape;
    is_empty_ = part_->box.empty();
  }

  // Calls visit(at, from, n) for each contiguous run of held elements among [first, first + count): its offset in the
  // held part, its start relative to `first`, and its length.
  template <typename Visit>
  void for_each(std::int64_t first, std::int64_t count, const Visit& visit) const {
    if (!part_) return visit(first, std::int64_t{0}, count);
    if (is_empty_) return;
    const std::size_t last = shape_.size() - 1;
    const std::int64_t inner = shape_[last], low = part_->box.start[last], high = part_->box.end[last];
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = first + done, column = at % inner, n = std::min(count - done, inner - column);
      const std::int64_t from = std::max(column, low), to = std::min(column + n, high);
      if (const std::int64_t row = row_of(at); row >= 0 && from < to)
        visit(row + from - part_->held.start[last], done + from - column, to - from);
      done += n;
    }
  }

  // False if no held element has an index, modulo `period`, in [first, end). May be true although none has.
  // REQUIRES: `period` is a product of innermost dims.
  bool may_hold(std::int64_t first, std::int64_t end, std::int64_t period) const {
    if (!part_) return true;
    if (is_empty_) return false;
    std::int64_t low = 0, high = 0;
    for (std::size_t d = shape_.size(); d-- > 0 && whole_[d] * shape_[d] <= period;) {
      low += part_->box.start[d] * whole_[d];
      high += (part_->box.end[d] - 1) * whole_[d];
    }
    return first <= high && low < end;
  }

 private:
  // The offset of an element's row in the held part; negative: not held.
  std::int64_t row_of(std::int64_t at) const {
    std::int64_t row = 0;
    for (std::size_t d = 0; d + 1 < shape_.size(); ++d) {
      const std::int64_t index = at / whole_[d] % shape_[d];
      if (index < part_->box.start[d] || index >= part_->box.end[d]) return -1;
      row += (index - part_->held.start[d]) * strides_[d];
    }
    return row;
  }

  const std::optional<ParameterPlace::Part>& part_;
  Shape shape_;
  std::vector<std::int64_t> whole_, strides_;
  bool is_empty_ = false;
};

// Our tensor as part of the HF tensor's [rows, columns]; takes its share of a piece of HF rows.
class Place {
 public:
  Place(const MappedTensor& mapped, const ParameterPlace& into) : mapped_(mapped), into_(into), held_(into) {}

  // True if some of the HF rows [row, row + rows) may belong here.
  bool wants(std::int64_t row, std::int64_t rows) const {
    if (mapped_.turned) return held_.may_hold(row, row + rows, mapped_.shape[0]);
    return held_.may_hold(row * mapped_.columns, (row + rows) * mapped_.columns, num_elements(into_.shape));
  }

  // `numbers`: HF rows from `row` on, `width` columns each.
  void put(std::span<const float> numbers, std::int64_t row, std::int64_t width) const {
    const std::int64_t rows = static_cast<std::int64_t>(numbers.size()) / width;
    if (mapped_.turned) {
      for (std::int64_t c = 0; c < width; ++c) put_run(c * mapped_.shape[0] + row, rows, numbers.data() + c, width);
    } else {
      for (std::int64_t r = 0; r < rows; ++r)
        put_run((row + r) * mapped_.columns, mapped_.columns, numbers.data() + r * width + mapped_.first, 1);
    }
  }

 private:
  // Writes `count` of our elements from `first` on, from every `stride`th number.
  void put_run(std::int64_t first, std::int64_t count, const float* numbers, std::int64_t stride) const {
    held_.for_each(first, count, [&](std::int64_t at, std::int64_t from, std::int64_t n) {
      std::byte* const bytes = into_.bytes.data();
      if (into_.dtype == DType::f32) {
        for (std::int64_t i = 0; i < n; ++i) __builtin_memcpy(bytes + (at + i) * 4, &numbers[(from + i) * stride], 4);
      } else if (into_.dtype == DType::bf16) {
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint16_t bits = to_bf16(numbers[(from + i) * stride]);
          __builtin_memcpy(bytes + (at + i) * 2, &bits, sizeof bits);
        }
      } else {
        for (std::int64_t i = 0; i < n; ++i)
          store(into_.dtype, bytes, at + i, static_cast<double>(numbers[(from + i) * stride]));
      }
    });
  }

  const MappedTensor& mapped_;
  const ParameterPlace& into_;
  Held held_;
};

class Importer {
 public:
  explicit Importer(const WeightFiles& files) : files_(files) {}

  // Reads an HF tensor into all of our tensors that it contains.
  Status read(const std::string& name, std::span<const Place> places) {
    const WeightTensor& tensor = files_.tensors().at(name);
    const std::int64_t width = tensor.shape.back(), element = size_of(tensor.dtype);
    const std::int64_t rows = num_elements(tensor.shape) / width;
    const std::int64_t at_once = std::clamp<std::int64_t>(kPartBytes / (width * element), 1, rows);
    for (std::int64_t row = 0; row < rows; row += at_once) {
      const std::int64_t taken = std::min(at_once, rows - row);
      if (std::none_of(places.begin(), places.end(), [&](const Place& place) { return place.wants(row, taken); }))
        continue;
      const auto count = static_cast<std::size_t>(taken * width);
      raw_.resize(count * static_cast<std::size_t>(element));
      numbers_.resize(count);
      TRY(files_.read_elements(name, row * width, raw_));
      to_f32(tensor.dtype, raw_, numbers_);
      for (const Place& place : places) place.put(numbers_, row, width);
    }
    return {};
  }

  // Refuses a copy whose bytes differ from the original's.
  Status compare(const std::string& copy, const std::string& original) {
    const WeightTensor &a = files_.tensors().at(copy), &b = files_.tensors().at(original);
    bool same = a.shape == b.shape && a.dtype == b.dtype;
    const std::int64_t count = num_elements(b.shape), at_once = kPartBytes / size_of(b.dtype);
    for (std::int64_t first = 0; same && first < count; first += at_once) {
      raw_.resize(static_cast<std::size_t>(std::min(at_once, count - first) * size_of(b.dtype)));
      other_.resize(raw_.size());
      TRY(files_.read_elements(original, first, raw_));
      TRY(files_.read_elements(copy, first, other_));
      same = raw_ == other_;
    }
    if (same) return {};
    return error(ErrorKind::invalid, "tensor '{}' is not equal to '{}', and config.json makes them one", copy, original)
        .hinted(copy == kHead ? "if they were trained apart, tie_word_embeddings: false in config.json"
                              : "the file was put together of several models, or damaged");
  }

 private:
  const WeightFiles& files_;
  std::vector<std::byte> raw_, other_;
  std::vector<float> numbers_;
};

}  // namespace

NameMap fitting(NameMap map, const WeightFiles& files) {
  const auto is_there = [&](const MappedTensor& tensor) { return files.tensors().contains(tensor.theirs); };
  if (std::any_of(map.tensors.begin(), map.tensors.end(),
                  [&](const MappedTensor& t) { return t.theirs.starts_with(map.prefix) && is_there(t); }))
    return map;
  NameMap bare = without_prefix(map);
  return std::any_of(bare.tensors.begin(), bare.tensors.end(), is_there) ? bare : map;
}

Status check_weights(const WeightFiles& files, const NameMap& map) {
  std::set<std::string> wanted;
  for (const MappedTensor& mapped : map.tensors) wanted.insert(mapped.theirs);
  std::vector<std::string> spare;
  for (const std::string& name : files.names()) {
    if (!wanted.contains(name) && !is_empty_name(map, name)) spare.push_back(name);
  }
  const auto hint_of_missing = [&](const std::string& name) -> std::string {
    const std::string near = nearest_hint(name, spare);
    if (name == kHead && near.empty() && files.tensors().contains(map.embedding))
      return R"(where the head is the embedding: "tie_word_embeddings": true in config.json)";
    return spare.empty() ? "the weights are of a smaller model, or incomplete" : near;
  };
  Wrongs wrongs;
  std::set<std::string> told;
  for (const MappedTensor& mapped : map.tensors) {
    if (!told.insert(mapped.theirs).second) continue;
    const auto found = files.tensors().find(mapped.theirs);
    if (found == files.tensors().end()) {
      wrongs.add([&] {
        return error(ErrorKind::not_found, "tensor '{}' ({}) is missing", mapped.theirs, to_string(mapped.shape))
            .hinted(hint_of_missing(mapped.theirs));
      });
    } else if (found->second.shape != mapped.shape) {
      wrongs.add([&] {
        return error(ErrorKind::invalid, "tensor '{}' is {}, the model's keys make it {}", mapped.theirs,
                     to_string(found->second.shape), to_string(mapped.shape))
            .hinted("config.json is of other weights, or they were changed");
      });
    } else if (!is_taken(found->second.dtype)) {
      wrongs.add([&] {
        return error(ErrorKind::unsupported, "tensor '{}' is {}, which is no type of weights", mapped.theirs,
                     type_text(found->second.dtype, found->second.shape))
            .hinted("f32, bf16 and f16 are taken; save the model as one of them");
      });
    }
  }
  const std::vector<std::string> names(wanted.begin(), wanted.end());
  for (const std::string& name : spare) {
    wrongs.add([&] {
      return error(ErrorKind::invalid, "tensor '{}' ({}) is no part of this model", name,
                   to_string(files.tensors().at(name).shape))
          .hinted(nearest_hint(name, names));
    });
  }
  return std::move(wrongs).finish();
}

Status import_weights(const WeightFiles& files, const NameMap& map, std::span<const ParameterPlace> places, bool some) {
  TRY(check_weights(files, map));
  std::unordered_map<std::string_view, const ParameterPlace*> by_name;
  for (const ParameterPlace& place : places) by_name.emplace(place.name, &place);
  struct Read {
    std::string name;
    std::vector<Place> into;
  };
  std::vector<Read> reads;
  bool embedding = false;
  for (auto begin = map.tensors.begin(); begin != map.tensors.end();) {
    const auto end = std::find_if(begin, map.tensors.end(), [&](const auto& t) { return t.theirs != begin->theirs; });
    std::vector<Place> into;
    for (auto mapped = begin; mapped != end; ++mapped) {
      const auto found = by_name.find(mapped->ours);
      if (some && found == by_name.end()) continue;
      const std::int64_t rows = mapped->shape.size() == 1 ? 1 : mapped->shape[0];
      if (found == by_name.end() || num_elements(found->second->shape) != rows * mapped->columns)
        return error(ErrorKind::invalid, "'{}' is no parameter of this model, or of another size", mapped->ours);
      into.emplace_back(*mapped, *found->second);
    }
    embedding |= !into.empty() && begin->theirs == map.embedding;
    if (!into.empty()) reads.push_back({begin->theirs, std::move(into)});
    begin = end;
  }
  TRY(for_each_in_parallel(reads.size(), some ? io_threads() : 1,
                           [&](std::size_t i) { return Importer(files).read(reads[i].name, reads[i].into); }));
  Importer importer(files);
  if (!embedding) return {};
  for (const std::string& copy : map.copies) {
    if (files.tensors().contains(copy)) TRY(importer.compare(copy, map.embedding));
  }
  return {};
}

}  // namespace systole
