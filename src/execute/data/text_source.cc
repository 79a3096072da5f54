#include "execute/data/text_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "execute/data/utf8.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

// First bytes of formats that are certainly not text.
struct Magic {
  std::string_view bytes, name, hint;
};
constexpr Magic kMagics[] = {
    {"\x1f\x8b", "gzip data", "rename the file to end in .gz"},
    {"\x28\xb5\x2f\xfd", "zstd data", "rename the file to end in .zst"},
    {"BZh91AY&SY", "bzip2 data", "decompress it with bunzip2"},
    {"\xfd"
     "7zXZ",
     "xz data", "decompress it with xz -d"},
    {"PK\x03\x04", "a zip archive", "unpack it with unzip"},
    {"PAR1\x15", "a Parquet file", "rename the file to end in .parquet"},
    {"%PDF-", "a PDF file", "extract its text"},
    {"\x7f"
     "ELF",
     "a program", "name a text file"},
    {"\xff\xfe", "UTF-16 text", "convert it with iconv -f utf-16 -t utf-8"},
    {"\xfe\xff", "UTF-16 text", "convert it with iconv -f utf-16 -t utf-8"},
    {"SYSTOKEN", "a token shard of Systole", "name the text it was made from"},
};

std::string_view view(const std::vector<std::byte>& bytes, std::size_t begin, std::size_t end) {
  return {reinterpret_cast<const char*>(bytes.data()) + begin, end - begin};
}

TextFormat text_format_of(RecordFormat records) {
  switch (records) {
    case RecordFormat::tfrecord: return TextFormat::tfrecord;
    case RecordFormat::array_record: return TextFormat::array_record;
    case RecordFormat::webdataset: return TextFormat::webdataset;
    case RecordFormat::mds: return TextFormat::mds;
    case RecordFormat::csv: return TextFormat::csv;
    case RecordFormat::numpy: return TextFormat::numpy;
    case RecordFormat::parquet: return TextFormat::parquet;
  }
  return TextFormat::text;
}

bool is_blank(std::string_view line) { return line.empty() || line == "\r"; }
bool is_blank_record(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

}  // namespace

const char* name_of(DocumentRule rule) {
  switch (rule) {
    case DocumentRule::line: return "line";
    case DocumentRule::blank_line: return "blank_line";
    case DocumentRule::file: return "file";
  }
  return "?";
}

const char* name_of(InvalidUtf8 policy) {
  switch (policy) {
    case InvalidUtf8::error: return "error";
    case InvalidUtf8::replace: return "replace";
    case InvalidUtf8::bytes: return "bytes";
  }
  return "?";
}

const char* name_of(TextFormat format) {
  switch (format) {
    case TextFormat::by_name: return "by_name";
    case TextFormat::text: return "text";
    case TextFormat::jsonl: return "jsonl";
    case TextFormat::tfrecord: return "tfrecord";
    case TextFormat::array_record: return "array_record";
    case TextFormat::webdataset: return "webdataset";
    case TextFormat::mds: return "mds";
    case TextFormat::csv: return "csv";
    case TextFormat::numpy: return "numpy";
    case TextFormat::parquet: return "parquet";
  }
  return "?";
}

TextFormat format_of(std::string_view path, TextFormat declared) {
  if (declared != TextFormat::by_name) return declared;
  if (const std::optional<RecordFormat> records = record_format_of(path)) return text_format_of(*records);
  for (const std::string_view ending : {".gz", ".dz", ".zst"}) {
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  }
  return path.ends_with(".jsonl") || path.ends_with(".ndjson") ? TextFormat::jsonl : TextFormat::text;
}

std::optional<RecordFormat> records_of(TextFormat format) {
  for (const RecordFormat records :
       {RecordFormat::tfrecord, RecordFormat::array_record, RecordFormat::webdataset, RecordFormat::mds,
        RecordFormat::csv, RecordFormat::numpy, RecordFormat::parquet}) {
    if (text_format_of(records) == format) return records;
  }
  return std::nullopt;
}

TextReader::TextReader(TextFiles files, TextOptions options)
    : files_(std::move(files)),
      options_(std::move(options)),
      field_{options_.field, {}},
      target_{options_.target, {}},
      buffer_(kBufferBytes) {}

Result<bool> TextReader::next(Document& document) {
  while (true) {
    if (stream_ == nullptr && records_ == nullptr && !TRY(next_file())) return false;
    if (records_ != nullptr) {
      if (TRY(next_record(document))) return true;
      records_.reset();
      continue;
    }
    Line first;
    if (!TRY(read_raw(document, first))) {
      stream_.reset();
      continue;
    }
    number_ = first.number;
    TRY(check_utf8(document.text, first));
    if (jsonl()) {
      document.target.clear();
      std::string record = std::exchange(document.text, {});
      if (options_.invalid_utf8 == InvalidUtf8::replace)
        stats_.replaced += static_cast<std::int64_t>(replace_half_pairs(record));
      if (!is_blank_record(record) && !TRY(read_json_record(record, filter_ ? &*filter_ : nullptr, field_, target_,
                                                            where(first), document.text, document.target))) {
        ++stats_.filtered;
        continue;
      }
      document.bytes = static_cast<std::int64_t>(document.text.size() + document.target.size());
    } else if (!options_.target.empty()) {
      return error(ErrorKind::invalid, "pairs are read from JSON Lines, and this is text")
          .at(where(first))
          .hinted(fmt::format("lines such as {{\"{}\": \"...\", \"{}\": \"...\"}} in a file that ends in .jsonl, or "
                              "format: jsonl",
                              options_.field, options_.target));
    } else {
      // After a replacement the text counts with its new bytes; the separator's bytes are unchanged.
      document.bytes += static_cast<std::int64_t>(document.text.size());
    }
    if (document.text.empty()) {
      ++stats_.empty;
      continue;
    }
    if (is_repeated(document)) continue;
    ++stats_.documents;
    stats_.bytes += document.bytes;
    return true;
  }
}

bool TextReader::is_repeated(const Document& document) {
  if (!options_.dedupe || seen_.add(document.target.empty() ? document.text : document.text + '\0' + document.target))
    return false;
  ++stats_.repeated;
  return true;
}

// False at the end of the file.
Result<bool> TextReader::next_record(Document& document) {
  DataRecord record;
  const auto use = [&](const DataRecord& given) { return use_record(given, document); };
  while (TRY(next_good(*records_, record, options_.bad_records, bad_, use))) {
    stats_.skipped = bad_.skipped;
    if (!kept_) {
      ++stats_.filtered;
      continue;
    }
    if (document.text.empty()) {
      ++stats_.empty;
      continue;
    }
    if (is_repeated(document)) continue;
    number_ = record.index;
    document.bytes = static_cast<std::int64_t>(document.text.size() + document.target.size());
    ++stats_.documents;
    stats_.bytes += document.bytes;
    return true;
  }
  stats_.skipped = bad_.skipped;
  stats_.filtered += records_->passed_over();
  return false;
}

Status TextReader::use_record(const DataRecord& record, Document& document) {
  if (filter_) {
    Result<bool> kept = filter_->keeps(*records_, record);
    if (!kept.ok()) return at_record(std::move(kept).error(), {shown_, record.index, record.byte});
    kept_ = *kept;
    if (!kept_) return Done{};
  }
  document.text = TRY(records_->field(record, options_.field));
  document.target.clear();
  if (!options_.target.empty()) document.target = TRY(records_->field(record, options_.target));
  if (options_.invalid_utf8 == InvalidUtf8::bytes) return Done{};
  for (std::string* text : {&document.text, &document.target}) {
    const std::optional<std::size_t> bad = find_invalid_utf8(*text);
    if (!bad) continue;
    if (options_.invalid_utf8 == InvalidUtf8::replace) {
      stats_.replaced += static_cast<std::int64_t>(replace_ill_formed_parts(*text));
      continue;
    }
    return record_error(
        ErrorKind::invalid, {shown_, record.index, record.byte},
        fmt::format("not UTF-8: byte 0x{:02x} at offset {} of its text", static_cast<unsigned char>((*text)[*bad]),
                    with_commas(static_cast<std::int64_t>(*bad))),
        "`invalid_utf8: replace` puts U+FFFD there, `bytes` takes them as they are");
  }
  return Done{};
}

// Reads the document's text as in the file; `bytes` counts only its separator.
Result<bool> TextReader::read_raw(Document& document, Line& first) {
  document.text.clear();
  document.bytes = 0;
  if (!jsonl() && options_.document == DocumentRule::blank_line) return read_paragraph(document, first);
  if (!jsonl() && options_.document == DocumentRule::file) return read_whole(document, first);
  if (!TRY(append_line(document.text, first))) return false;
  if (!jsonl() && is_blank(document.text)) document.text.clear();
  document.bytes = first.terminated ? 1 : 0;
  return true;
}

Result<bool> TextReader::read_paragraph(Document& document, Line& first) {
  Line line;
  std::string& text = document.text;
  while (true) {
    const std::size_t start = text.size() + (text.empty() ? 0 : 1);
    const bool inner = line.terminated && !text.empty();
    if (inner) text += '\n';
    const std::size_t before = text.size();
    const bool more = TRY(append_line(text, line));
    const bool blank = more && is_blank(std::string_view(text).substr(before));
    if (more && !blank) {
      if (start == 0) first = line;
      if (static_cast<std::int64_t>(text.size()) > options_.largest_document.count()) return too_long(first);
      continue;
    }
    if (blank && !inner) {  // between paragraphs
      text.clear();
      line.terminated = false;
      ++stats_.empty;
      continue;
    }
    const auto blank_bytes = static_cast<std::int64_t>(text.size() - before) + (more && line.terminated ? 1 : 0);
    text.resize(before - (inner ? 1 : 0));
    document.bytes = inner ? 1 + blank_bytes : 0;
    return !text.empty();
  }
}

Result<bool> TextReader::read_whole(Document& document, Line& first) {
  if (offset_ > 0) return false;
  first = {0, 1, false};
  while (begin_ < end_) {
    document.text.append(view(buffer_, begin_, end_));
    offset_ += static_cast<std::int64_t>(end_ - begin_);
    begin_ = end_;
    if (static_cast<std::int64_t>(document.text.size()) > options_.largest_document.count()) return too_long(first);
    TRY(fill());
  }
  return true;
}

// Appends a line without its newline; false at the end of the file.
Result<bool> TextReader::append_line(std::string& text, Line& line) {
  if (begin_ == end_) TRY(fill());
  if (begin_ == end_) return false;
  line = {offset_, ++line_, false};
  const std::size_t before = text.size();
  while (begin_ < end_) {
    const std::string_view unread = view(buffer_, begin_, end_);
    const std::size_t newline = unread.find('\n');
    line.terminated = newline != std::string_view::npos;
    const std::size_t taken = line.terminated ? newline + 1 : unread.size();
    text.append(unread.substr(0, line.terminated ? newline : taken));
    begin_ += taken;
    offset_ += static_cast<std::int64_t>(taken);
    if (static_cast<std::int64_t>(text.size() - before) > options_.largest_document.count()) return too_long(line);
    if (line.terminated) break;
    TRY(fill());
  }
  return true;
}

// REQUIRES: the buffer is consumed. Leaves it empty at the end of the file.
Status TextReader::fill() {
  begin_ = end_ = 0;
  if (!at_end_) end_ = TRY(stream_->read(buffer_));
  at_end_ = end_ == 0;
  return Done{};
}

Result<bool> TextReader::next_file() {
  if (file_ == files_.paths.size()) return false;
  if (!options_.where.empty() && !filter_) filter_ = TRY(RecordFilter::parse(options_.where));
  const std::string& path = files_.paths[file_++];
  shown_ = files_.prefix + path;
  format_ = format_of(path, options_.format);
  ++stats_.files;
  if (const std::optional<RecordFormat> records = records_of(format_)) {
    records_ = TRY(open_records({files_.store, path, shown_}, *records, {options_.largest_document}));
    if (filter_) TRY(records_->pass_over(filter_->needed()));
    return true;
  }
  if (filter_ && !jsonl()) {
    return error(ErrorKind::invalid, "`where` chooses records by their fields, and this is text")
        .at({shown_})
        .hinted("name files of records (.jsonl, .csv, .tar, .mds, .tfrecord), or leave `where` out");
  }
  stream_ = TRY(open_bytes(*files_.store, path, shown_, options_.compression));
  begin_ = end_ = 0;
  at_end_ = false;
  offset_ = line_ = 0;
  TRY(fill());
  if (begin_ == end_) {
    return error(ErrorKind::invalid, "the file holds no text: it decompresses to nothing").at({shown_});
  }
  if (options_.invalid_utf8 != InvalidUtf8::bytes) TRY(refuse_binary());
  return true;
}

Status TextReader::refuse_binary() const {
  const std::string_view start = view(buffer_, begin_, end_);
  for (const Magic& magic : kMagics) {
    if (start.starts_with(magic.bytes)) {
      return error(ErrorKind::invalid, "this is {}, not text", magic.name).at({shown_}).hinted(std::string(magic.hint));
    }
  }
  const std::size_t nul = start.find('\0');
  if (nul == std::string_view::npos) return Done{};
  return error(ErrorKind::invalid, "this is binary data, not text: byte {} is NUL",
               with_commas(static_cast<std::int64_t>(nul)))
      .at({shown_})
      .hinted("name a text file, or take the bytes as they are with `invalid_utf8: bytes`");
}

Status TextReader::check_utf8(std::string& text, const Line& first) {
  if (options_.invalid_utf8 == InvalidUtf8::bytes && !jsonl()) return Done{};
  const std::size_t good = find_invalid_utf8(text).value_or(text.size());
  if (good == text.size()) return Done{};
  if (options_.invalid_utf8 == InvalidUtf8::replace) {
    stats_.replaced += static_cast<std::int64_t>(replace_ill_formed_parts(text));
    return Done{};
  }
  Line place = first;
  place.number += std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(good), '\n');
  const char* hint =
      jsonl() ? "JSON is UTF-8: convert the file, or put U+FFFD there with `invalid_utf8: replace`"
              : "convert the file to UTF-8, or use `invalid_utf8: replace` (U+FFFD) or `bytes` (as they are)";
  return error(ErrorKind::invalid, "not UTF-8: byte 0x{:02x} at offset {} of the {}text",
               static_cast<unsigned char>(text[good]), with_commas(first.offset + static_cast<std::int64_t>(good)),
               compression_of(shown_, options_.compression) == Compression::none ? "" : "decompressed ")
      .at(where(place))
      .hinted(hint);
}

Error TextReader::too_long(const Line& line) const {
  return error(ErrorKind::invalid, "a document is longer than {}", to_string(options_.largest_document))
      .at(where(line))
      .hinted("check `document:` (line, blank_line or file), or raise `largest_document`");
}

}  // namespace systole
