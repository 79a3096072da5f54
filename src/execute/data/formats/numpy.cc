#include "execute/data/formats/numpy.h"

#include <algorithm>

#include "execute/data/formats/byte_window.h"
#include "execute/data/formats/field_names.h"
#include "execute/data/formats/zip_members.h"
#include "ground/base/utf8.h"
#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr std::int64_t kMostHeader = 1 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

// The part of the header's dict behind 'key': the header is a Python literal with these three keys, in any order.
std::string_view behind(std::string_view dict, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{}{}{}", quote, key, quote);
    const std::size_t at = dict.find(quoted);
    if (at == dict.npos) continue;
    dict.remove_prefix(at + quoted.size());
    const std::size_t value = dict.find_first_not_of(" :");
    return value == dict.npos ? std::string_view() : dict.substr(value);
  }
  return {};
}

// '<f4': byte order, kind, bytes (of U characters). 0 bytes: not one of these.
std::int64_t bytes_of_descr(std::string_view descr) {
  if (descr.size() < 3 || descr.size() > 10 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return 0;
  if (std::string_view("biufcSUVmM").find(descr[1]) == std::string_view::npos) return 0;
  std::int64_t bytes = 0;
  std::size_t i = 2;
  for (; i < descr.size() && descr[i] >= '0' && descr[i] <= '9'; ++i) bytes = bytes * 10 + (descr[i] - '0');
  if (i < descr.size() && !(descr[i] == '[' && (descr[1] == 'm' || descr[1] == 'M'))) return 0;  // <M8[ns]
  return descr[1] == 'U' ? 4 * bytes : bytes;
}

Error no_header(std::string_view why) { return error(ErrorKind::corrupt, "no header of a .npy file: {}", why); }

Result<std::vector<std::int64_t>> shape_of(std::string_view text, std::int64_t item_bytes) {
  if (!text.starts_with('(')) return no_header("it has no shape");
  std::vector<std::int64_t> shape;
  std::int64_t bytes = std::max<std::int64_t>(item_bytes, 1);
  for (std::size_t at = 1; at < text.size() && text[at] != ')';) {
    if (text[at] == ' ' || text[at] == ',' || text[at] == 'L') {
      ++at;
      continue;
    }
    std::int64_t dim = 0;
    const std::size_t begin = at;
    for (; at < text.size() && at - begin < 18 && text[at] >= '0' && text[at] <= '9'; ++at)
      dim = dim * 10 + (text[at] - '0');
    if (at == begin || shape.size() == 64) return no_header("its shape is no tuple of numbers");
    if (dim > 0 && bytes > kMostBytes / dim) return no_header("its shape has more bytes than a file can have");
    bytes *= std::max<std::int64_t>(dim, 1);
    shape.push_back(dim);
  }
  return shape;
}

struct Array {
  std::string name;
  NpyHeader header;
  std::string bytes;
};

Status same_size(const NpyHeader& header, std::int64_t size, const RecordPlace& place) {
  const std::int64_t expected = header.data_at + header.rows() * header.row_bytes();
  if (size == expected) return Done{};
  return record_error(ErrorKind::corrupt, place,
                      fmt::format("the array takes {} bytes with its header, and there are {}", with_commas(expected),
                                  with_commas(size)),
                      "it was perhaps not copied whole: make or fetch it again");
}

Status fits(const NpyHeader& header, const RecordLimits& limits, const RecordPlace& place) {
  if (header.row_bytes() == 0 && header.rows() > 0)
    return record_error(ErrorKind::invalid, place, "the rows of the array are empty");
  if (header.row_bytes() <= limits.largest_record.count()) return Done{};
  return record_error(ErrorKind::invalid, place,
                      fmt::format("a row has {} bytes, and the largest allowed is {}", with_commas(header.row_bytes()),
                                  with_commas(limits.largest_record.count())));
}

// A row as field() gives it: a text of dtype U as UTF-8 in `scratch`, one of dtype S without its padding.
std::string_view value_of_row(const NpyHeader& header, std::string_view row, std::string& scratch) {
  const char kind = header.descr.size() > 1 ? header.descr[1] : ' ';
  if (header.shape.size() > 1 || (kind != 'U' && kind != 'S')) return row;
  if (kind == 'S') return row.substr(0, row.find_last_not_of('\0') + 1);
  scratch.clear();
  const bool big = header.descr[0] == '>';
  std::size_t end = row.size();
  while (end >= 4 && row.substr(end - 4, 4) == std::string_view("\0\0\0\0", 4)) end -= 4;
  for (std::size_t at = 0; at + 4 <= end; at += 4) {
    std::uint32_t c = 0;
    for (std::size_t i = 0; i < 4; ++i) c = c << 8 | static_cast<unsigned char>(row[at + (big ? i : 3 - i)]);
    if (c <= 0x10FFFF)
      append_utf8(scratch, c);
    else
      scratch += '\xFF';  // what no character is becomes no UTF-8
  }
  return scratch;
}

class RowReader : public RecordReader {
 public:
  RowReader(std::string shown, std::int64_t rows) : shown_(std::move(shown)), rows_(rows) {}
  bool has_index() const override { return true; }
  std::int64_t count() const override { return rows_; }
  Result<bool> next(DataRecord& record) override {
    if (next_ == rows_) return false;
    TRY(read(next_, record));
    ++next_;
    return true;
  }

 protected:
  std::string shown_, scratch_;
  std::int64_t rows_, next_ = 0;
};

class NpyReader : public RowReader {
 public:
  NpyReader(std::unique_ptr<ByteWindow> window, NpyHeader header, std::string shown)
      : RowReader(std::move(shown), header.rows()), window_(std::move(window)), header_(std::move(header)) {}
  Status read(std::int64_t index, DataRecord& record) override {
    const std::int64_t begin = header_.data_at + index * header_.row_bytes();
    record = {index, begin, TRY(window_->bytes(begin, begin + header_.row_bytes()))};
    if (static_cast<std::int64_t>(record.bytes.size()) == header_.row_bytes()) return Done{};
    return record_error(ErrorKind::corrupt, {shown_, index, begin}, "truncated: the file ends within the row");
  }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    if (is_whole(name)) return value_of_row(header_, record.bytes, scratch_);
    return record_error(ErrorKind::invalid, {shown_, record.index, record.byte},
                        fmt::format("a .npy file has no fields, and '{}' is asked for", name), "field: .");
  }

 private:
  std::unique_ptr<ByteWindow> window_;
  NpyHeader header_;
};

class NpzReader : public RowReader {
 public:
  NpzReader(std::vector<Array> arrays, std::string shown)
      : RowReader(std::move(shown), arrays[0].header.rows()), arrays_(std::move(arrays)) {}
  Status read(std::int64_t index, DataRecord& record) override {
    record = {index, -1, {}};
    return Done{};
  }
  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    for (const Array& array : arrays_) {
      if (array.name != name && !(is_whole(name) && arrays_.size() == 1)) continue;
      const auto bytes = static_cast<std::size_t>(array.header.row_bytes());
      const std::size_t begin =
          static_cast<std::size_t>(array.header.data_at) + static_cast<std::size_t>(record.index) * bytes;
      return value_of_row(array.header, std::string_view(array.bytes).substr(begin, bytes), scratch_);
    }
    std::vector<std::string_view> names;
    for (const Array& array : arrays_) names.push_back(array.name);
    return no_such_field({shown_, record.index}, "archive", name, names);
  }
  std::vector<std::string> field_names() override {
    std::vector<std::string> names;
    for (const Array& array : arrays_) names.push_back(array.name);
    return names;
  }

 private:
  std::vector<Array> arrays_;
};

}  // namespace

std::int64_t NpyHeader::row_bytes() const {
  std::int64_t bytes = item_bytes;
  for (std::size_t i = 1; i < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

Result<NpyHeader> parse_npy_header(std::string_view bytes) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) return no_header("it does not begin with \\x93NUMPY");
  const int version = bytes[6];
  if (version < 1 || version > 3) return error(ErrorKind::unsupported, "version {} of the .npy format", version);
  const auto byte = [&](std::size_t at) { return static_cast<std::int64_t>(static_cast<unsigned char>(bytes[at])); };
  const std::int64_t begin = version == 1 ? 10 : 12;
  const std::int64_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > kMostHeader || begin + length > static_cast<std::int64_t>(bytes.size()))
    return no_header("its length leads out of the file");
  const std::string_view dict = bytes.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
  NpyHeader header;
  header.data_at = begin + length;
  const std::string_view descr = behind(dict, "descr");
  if (descr.starts_with('['))
    return error(ErrorKind::unsupported, "an array of a structured dtype")
        .hinted("save each field as an array of its own");
  if (descr.size() < 2 || (descr[0] != '\'' && descr[0] != '"')) return no_header("it has no descr");
  header.descr = descr.substr(1, descr.find(descr[0], 1) - 1);
  if (header.descr == "|O" || header.descr == "O")
    return error(ErrorKind::unsupported, "an array of Python objects, which are pickles: reading one runs what it says")
        .hinted("save texts as an array of dtype 'U' or 'S', or as JSON Lines");
  header.item_bytes = bytes_of_descr(header.descr);
  if (header.item_bytes == 0 && !header.descr.ends_with("S0") && !header.descr.ends_with("U0"))
    return error(ErrorKind::unsupported, "an array of dtype '{}'", header.descr.substr(0, 100));
  header.shape = TRY(shape_of(behind(dict, "shape"), header.item_bytes));
  if (!behind(dict, "fortran_order").starts_with("False") && header.shape.size() > 1)
    return error(ErrorKind::unsupported, "an array in Fortran order, whose rows are scattered over the file")
        .hinted("save it with numpy.save(name, numpy.ascontiguousarray(array))");
  return header;
}

Result<std::unique_ptr<RecordReader>> open_npy(const RecordFile& file, const NumpyOptions& options) {
  std::unique_ptr<ByteWindow> window = TRY(ByteWindow::open(file, Compression::none));
  Result<NpyHeader> header = parse_npy_header(TRY(window->bytes(0, kMostHeader)));
  if (!header.ok()) return at_record(std::move(header).error(), {file.shown});
  TRY(same_size(*header, window->file_size(), {file.shown}));
  TRY(fits(*header, options.limits, {file.shown}));
  return std::unique_ptr<RecordReader>(std::make_unique<NpyReader>(std::move(window), *std::move(header), file.shown));
}

Result<std::unique_ptr<RecordReader>> open_npz(const RecordFile& file, const NumpyOptions& options) {
  if (Status itself = refuse_lfs_pointer(*file.store, file.path); !itself.ok())
    return std::move(itself).error().at({file.shown});
  const Result<std::string> archive = read_text(*file.store, file.path, options.largest_archive);
  if (!archive.ok()) return Error(archive.error()).at({file.shown});
  auto members = unzip(*archive, options.largest_archive.count());
  if (!members.ok()) return at_record(std::move(members).error(), {file.shown});
  std::vector<Array> arrays;
  for (auto& [name, bytes] : *members) {
    const RecordPlace place{file.shown + ":" + name};
    Result<NpyHeader> header = parse_npy_header(bytes);
    if (!header.ok()) return at_record(std::move(header).error(), place);
    TRY(same_size(*header, static_cast<std::int64_t>(bytes.size()), place));
    TRY(fits(*header, options.limits, place));
    if (!arrays.empty() && arrays[0].header.rows() != header->rows())
      return record_error(ErrorKind::invalid, place,
                          fmt::format("the array has {} rows, and '{}' has {}", with_commas(header->rows()),
                                      arrays[0].name, with_commas(arrays[0].header.rows())),
                          "save arrays of other lengths in a file of their own");
    arrays.push_back(
        {name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name, *std::move(header), std::move(bytes)});
  }
  if (arrays.empty()) return record_error(ErrorKind::invalid, {file.shown}, "the archive holds no array");
  return std::unique_ptr<RecordReader>(std::make_unique<NpzReader>(std::move(arrays), file.shown));
}

bool is_numpy_name(std::string_view path) { return path.ends_with(".npy") || path.ends_with(".npz"); }

Result<std::unique_ptr<RecordReader>> open_numpy(const RecordFile& file, const NumpyOptions& options) {
  return file.path.ends_with(".npz") ? open_npz(file, options) : open_npy(file, options);
}

}  // namespace systole
