#pragma once
// Reads documents from text files: plain, gzip or zstd; lines, paragraphs, whole files, or JSON Lines; and from files of
// records (formats/record_file.h). The files are streamed; memory is bounded by the largest document.
//
// Bytes are counted so that "bits per byte" covers the whole file: a document's `bytes` are those of its text and of
// the separator that ended it (the newline of a line, the newline and blank line of a paragraph, none for a whole file
// or a record), because the end-of-document token stands for that separator. Documents without text (empty lines,
// also if ended by CR LF, further blank lines, "" in JSON) are skipped and counted in `empty`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/byte_stream.h"
#include "execute/data/formats/bad_records.h"
#include "execute/data/formats/record_file.h"
#include "execute/data/formats/record_filter.h"
#include "execute/data/formats/seen_texts.h"
#include "execute/data/jsonl.h"

namespace systole {

enum class DocumentRule { line, blank_line, file };  // where a document ends
enum class InvalidUtf8 { error, replace, bytes };    // refuse; replace by U+FFFD; pass the bytes unchanged
// by_name: .jsonl or .ndjson before the compression's suffix; a record format's own ending; else text.
enum class TextFormat { by_name, text, jsonl, tfrecord, array_record, webdataset, mds, csv, numpy, parquet };

const char* name_of(DocumentRule rule);
const char* name_of(InvalidUtf8 policy);
const char* name_of(TextFormat format);
TextFormat format_of(std::string_view path, TextFormat declared);  // never by_name
std::optional<RecordFormat> records_of(TextFormat format);         // nothing for text and jsonl

struct TextOptions {
  DocumentRule document = DocumentRule::line;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
  TextFormat format = TextFormat::by_name;
  Compression compression = Compression::by_name;
  std::string field = "text";                      // the field of a record with the text; ".": a whole record
  std::string target;                              // pairs: the field of a record with the answer; else empty
  Bytes largest_document{std::int64_t{64} << 20};  // a longer one is an error; bounds memory
  BadRecordRule bad_records = {};                  // of files of records
  std::string where;                               // which records are kept (record_filter.h); empty: all
  bool dedupe = false;                             // a document that was there before is left out
};

struct Document {
  std::string text;        // without its separator
  std::int64_t bytes = 0;  // including the separator
  std::string target;      // of pairs; its bytes are counted too
};

struct TextStats {
  std::int64_t files = 0, documents = 0, bytes = 0, empty = 0;
  std::int64_t replaced = 0;  // ill-formed UTF-8 parts replaced by U+FFFD
  std::int64_t skipped = 0;   // bad records
  std::int64_t filtered = 0;  // not kept by `where`
  std::int64_t repeated = 0;  // left out by `dedupe`
};

// Paths of `store` that match the patterns (*, ?, [a-z] within a name): each pattern's sorted, in the patterns' order.
// A file or folder whose name equals the pattern takes precedence: `data[1].txt` is the file of that name, if it
// exists. `prefix`: put before paths in messages. Errors: not_found if a pattern matches no file; invalid if a file is
// named twice.
Result<std::vector<std::string>> expand_files(Store& store, const std::vector<std::string>& patterns,
                                              const std::string& prefix = "");

// The store, and the prefix of its paths in messages: a store at "/" has the prefix "/".
struct TextFiles {
  Store* store = nullptr;  // borrowed
  std::vector<std::string> paths;
  std::string prefix;
};

// Reads the files in order. One thread at a time.
class TextReader {
 public:
  TextReader(TextFiles files, TextOptions options);

  // The next document, or false after the last file. Errors (with file, line and, in the message, byte of the
  // decompressed text): not_found; io; corrupt (truncated or damaged compressed data); invalid (an empty file, binary
  // data, ill-formed UTF-8, a bad JSON record, a document that is too long). After an error only destruction is
  // allowed.
  Result<bool> next(Document& document);
  const TextStats& stats() const { return stats_; }
  // Of the document that next() gave last: its first line, from 1; of files of records its record, from 0.
  std::int64_t number() const { return number_; }

 private:
  struct Line {
    std::int64_t offset = 0, number = 0;  // of the line's first byte; 1-based
    bool terminated = false;              // ended by a newline
  };
  Result<bool> next_file();
  Result<bool> next_record(Document& document);
  Status use_record(const DataRecord& record, Document& document);
  Result<bool> read_raw(Document& document, Line& first);
  Result<bool> append_line(std::string& text, Line& line);
  Result<bool> read_paragraph(Document& document, Line& first);
  Result<bool> read_whole(Document& document, Line& first);
  Status fill();
  bool is_repeated(const Document& document);
  Status refuse_binary() const;
  Status check_utf8(std::string& text, const Line& first);
  bool jsonl() const { return format_ == TextFormat::jsonl; }
  Error too_long(const Line& line) const;
  Where where(const Line& line) const { return {shown_, static_cast<int>(line.number), 0}; }

  TextFiles files_;
  TextOptions options_;
  JsonField field_, target_;  // of JSON Lines
  TextStats stats_;
  std::size_t file_ = 0;
  std::optional<RecordFilter> filter_;
  SeenTexts seen_;
  bool kept_ = true;  // by the filter: the record that was read last
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<RecordReader> records_;  // instead of the stream
  BadRecordTally bad_;
  std::string shown_;
  TextFormat format_ = TextFormat::text;  // of the open file
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  bool at_end_ = false;
  std::int64_t offset_ = 0, line_ = 0, number_ = 0;
};

// Whether a document is held out: a hash of its bytes and the seed is below the fraction. So equal documents stay
// together, and neither order nor other documents matter. REQUIRES: 0 <= fraction < 1.
bool is_held_out(std::string_view document, double fraction, std::uint64_t seed);

}  // namespace systole
