#include "execute/data/text_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "execute/data/jsonl.h"
#include "execute/data/testing/made_up_text.h"
#include "execute/data/testing/text_reading.h"

namespace systole {
namespace {

std::string gzip(std::string_view text) {
  z_stream zlib{};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&zlib, static_cast<uLong>(text.size())) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

// With a checksum, as written by the zstd program.
std::string zstd(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size()));
  return out;
}

class TextSource : public ReadsText {};

using Texts = std::vector<std::string>;

TEST_F(TextSource, LinesCountTheirNewlines) {
  put("a.txt", "one\n\ntwo\r\nthree");
  const Reading reading = read({"a.txt"});
  EXPECT_EQ(texts(reading), (Texts{"one", "two\r", "three"}));
  EXPECT_EQ(reading.documents[0].bytes, 4);
  EXPECT_EQ(reading.documents[2].bytes, 5);
  EXPECT_EQ(reading.stats.empty, 1);
  EXPECT_EQ(reading.stats.bytes, 4 + 5 + 5);
}

TEST_F(TextSource, ParagraphsEndAtBlankLines) {
  put("a.txt", "\n\na\nb\n\n\nc\n\r\nd");
  const Reading reading = read({"a.txt"}, {.document = DocumentRule::blank_line});
  EXPECT_EQ(texts(reading), (Texts{"a\nb", "c", "d"}));
  EXPECT_EQ(reading.documents[0].bytes, 5);  // "a\nb\n\n"
  EXPECT_EQ(reading.documents[1].bytes, 4);  // "c\n\r\n"
  EXPECT_EQ(reading.documents[2].bytes, 1);
  put("b.txt", "x\ny\n");
  const Reading last = read({"b.txt"}, {.document = DocumentRule::blank_line});
  EXPECT_EQ(texts(last), (Texts{"x\ny"}));
  EXPECT_EQ(last.documents[0].bytes, 4);
}

TEST_F(TextSource, WholeFilesAreWhole) {
  const std::string large(1'000'000, 'x');
  put("a.txt", "one\n\ntwo\n");
  put("b.txt", large);
  const Reading reading = read({"a.txt", "b.txt"}, {.document = DocumentRule::file});
  EXPECT_EQ(texts(reading), (Texts{"one\n\ntwo\n", large}));
  EXPECT_EQ(reading.stats.bytes, 1'000'009);
}

TEST_F(TextSource, CompressedEqualsPlain) {
  std::string text;
  for (const std::string& line : made_up_documents(40'000)) text += line + "\n";  // longer than many buffers
  put("a.txt", text);
  put("a.txt.gz", gzip(text));
  put("a.txt.zst", zstd(text));
  put("members.gz", gzip(text.substr(0, 1000)) + gzip(text.substr(1000)));
  put("frames.zst", zstd(text.substr(0, 1000)) + zstd(text.substr(1000)));
  const Texts plain = texts(read({"a.txt"}));
  EXPECT_EQ(plain.size(), 40'000u);
  for (const char* path : {"a.txt.gz", "a.txt.zst", "members.gz", "frames.zst"})
    EXPECT_EQ(texts(read({path})), plain) << path;
  put("strange.name", gzip(text));
  EXPECT_EQ(texts(read({"strange.name"}, {.compression = Compression::gzip})), plain);
}

TEST_F(TextSource, EveryCutOfCompressedDataIsAnError) {
  std::string text;
  for (const std::string& line : made_up_documents(300)) text += line + "\n";
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const std::string path = whole[0] == '\x1f' ? "a.gz" : "a.zst";
    for (std::size_t size = 1; size < whole.size(); size += 1 + whole.size() / 97) {
      put(path, whole.substr(0, size));
      const Reading reading = read({path});
      ASSERT_TRUE(reading.error) << path << " cut at " << size;
      EXPECT_EQ(reading.error->kind, ErrorKind::corrupt);
      EXPECT_EQ(reading.error->where.file, "in/" + path);
      EXPECT_NE(reading.error->message.find("truncated"), std::string::npos) << reading.error->message;
    }
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 0x10;
    damaged[damaged.size() / 2 + 1] ^= 0x24;
    put(path, damaged);
    const Reading reading = read({path});
    ASSERT_TRUE(reading.error) << path;
    EXPECT_EQ(reading.error->kind, ErrorKind::corrupt) << reading.error->message;
  }
}

TEST_F(TextSource, JsonLines) {
  put("a.jsonl", "{\"text\": \"one\\ntwo \\u00e9\", \"id\": 1}\n\n{\"text\": \"\"}\n{\"text\":\"three\"}\n");
  put("b.jsonl.gz", gzip("{\"body\": \"four\"}\n"));
  const Reading reading = read({"a.jsonl"});
  EXPECT_EQ(texts(reading), (Texts{"one\ntwo é", "three"}));
  EXPECT_EQ(reading.stats.empty, 2);
  EXPECT_EQ(reading.documents[0].bytes, 10);
  EXPECT_EQ(texts(read({"b.jsonl.gz"}, {.field = "body"})), (Texts{"four"}));
}

struct BadJson {
  std::string line, message;
  int col;
};

// A text is moved out of its record, but not before the target was read.
TEST(Jsonl, ATargetMayBeTheTextItself) {
  const std::string record = R"({"a.b": "a text that is too long to stand in the string itself", "b": "short"})";
  const auto texts = [&](const std::string& field, const std::string& target) {
    JsonField of_text{field, {}}, of_target{target, {}};
    std::string text, target_text;
    EXPECT_TRUE(read_json_record(record, nullptr, of_text, of_target, {}, text, target_text).value());
    return text + "|" + target_text;
  };
  const std::string a = "a text that is too long to stand in the string itself";
  EXPECT_EQ(texts("a.b", ""), a + "|");
  EXPECT_EQ(texts("a.b", "b"), a + "|short");
  EXPECT_EQ(texts("a.b", "a.b"), a + "|" + a);
  EXPECT_EQ(texts("a.b", "\"a.b\""), a + "|" + a);
}

TEST_F(TextSource, BadJsonIsPlaced) {
  for (const BadJson& bad :
       {BadJson{"{\"text\": oops}", "not JSON", 10}, BadJson{"{\"text\": \"one\"", "ends too early", 15},
        BadJson{"[1]", "not an object", 0}, BadJson{"{\"body\": \"x\"}", "no field 'text'", 0},
        BadJson{"{\"text\": 5}", "not a string", 0}}) {
    put("a.jsonl", "{\"text\": \"fine\"}\n" + bad.line + "\n");
    const Reading reading = read({"a.jsonl"});
    ASSERT_TRUE(reading.error) << bad.line;
    EXPECT_NE(reading.error->message.find(bad.message), std::string::npos) << reading.error->message;
    EXPECT_EQ(reading.error->where, (Where{"in/a.jsonl", 2, bad.col}));
    EXPECT_FALSE(reading.error->hint.empty());
  }
}

TEST_F(TextSource, ABlankLineIsNoDocumentWhateverEndsIt) {
  put("a.jsonl", "{\"text\": \"one\"}\r\n\r\n \t\r\n{\"text\": \"two\"}\r\n\r\n");
  const Reading records = read({"a.jsonl"});
  EXPECT_EQ(texts(records), (Texts{"one", "two"}));
  EXPECT_EQ(records.stats.empty, 3);
  EXPECT_EQ(records.stats.bytes, 6);
  put("pairs.jsonl", "{\"in\": \"one\", \"out\": \"two\"}\r\n\r\n");
  const Reading pairs = read({"pairs.jsonl"}, {.field = "in", .target = "out"});
  ASSERT_EQ(pairs.documents.size(), 1u);
  EXPECT_EQ(pairs.documents[0].target, "two");
  EXPECT_EQ(pairs.stats.empty, 1);
  put("a.txt", "one\r\n\r\ntwo\r\n\r\n");
  const Reading lines = read({"a.txt"});
  EXPECT_EQ(texts(lines), (Texts{"one\r", "two\r"}));
  EXPECT_EQ(lines.stats.empty, 2);
  EXPECT_EQ(lines.stats.bytes, 10);
}

TEST_F(TextSource, HalfASurrogatePairIsNamedOrReplaced) {
  put("a.jsonl", R"({"text": "cut \ud83d end, \\ud83d, \ud83d\ude00, \uDE00"})"
                 "\n");
  const Reading refused = read({"a.jsonl"});
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->message, "\\ud83d is half a surrogate pair, and the other half is not beside it");
  EXPECT_EQ(refused.error->where, (Where{"in/a.jsonl", 1, 15}));
  EXPECT_NE(refused.error->hint.find("`invalid_utf8: replace`"), std::string::npos) << refused.error->hint;
  const Reading replaced = read({"a.jsonl"}, {.invalid_utf8 = InvalidUtf8::replace});
  EXPECT_EQ(texts(replaced), (Texts{"cut \xEF\xBF\xBD end, \\ud83d, \xF0\x9F\x98\x80, \xEF\xBF\xBD"}));
  EXPECT_EQ(replaced.stats.replaced, 2);
  put("a.jsonl", R"({"text": "\ud83d\ud83d\ude00\ud83d"})"
                 "\n");
  EXPECT_EQ(texts(read({"a.jsonl"}, {.invalid_utf8 = InvalidUtf8::replace})),
            (Texts{"\xEF\xBF\xBD\xF0\x9F\x98\x80\xEF\xBF\xBD"}));
}

TEST_F(TextSource, WhatIsNoJsonIsNamed) {
  const std::tuple<const char*, const char*, int> cases[] = {
      {R"({"text": "fine", "score": NaN})", "not JSON: NaN, which Python writes, is no number of JSON's", 27},
      {R"({"text": "fine", "score": -Infinity})", "not JSON: Infinity, which Python writes, is no number of JSON's",
       28},
      {R"({'text': 'fine'})", "not JSON: ' is as Python prints it", 2},
      {R"({"text": "fine", "more": None})", "not JSON: None is as Python prints it", 26},
      {"{\"text\": \"a\tb\"}",
       "not JSON: invalid string: control character U+0009 (HT) must be escaped to \\u0009 or \\t", 12},
      {"{", "the JSON record ends too early", 2}};
  for (const auto& [line, message, col] : cases) {
    put("a.jsonl", std::string(line) + "\n");
    for (const InvalidUtf8 policy : {InvalidUtf8::error, InvalidUtf8::replace}) {
      const Reading reading = read({"a.jsonl"}, {.invalid_utf8 = policy});
      ASSERT_TRUE(reading.error) << line;
      EXPECT_EQ(reading.error->message, message);
      EXPECT_EQ(reading.error->where, (Where{"in/a.jsonl", 1, col})) << line;
      EXPECT_FALSE(reading.error->hint.empty());
    }
  }
}

TEST_F(TextSource, APointerOfGitLfsIsNoText) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 123\n";
  for (const char* path : {"a.txt", "a.jsonl", "a.txt.gz", "a.jsonl.zst", "a.parquet", "a.npz"}) {
    put(path, pointer);
    for (const InvalidUtf8 policy : {InvalidUtf8::error, InvalidUtf8::bytes}) {
      const Reading reading = read({path}, {.invalid_utf8 = policy});
      ASSERT_TRUE(reading.error) << path;
      EXPECT_EQ(reading.error->message, "this is a pointer of git-lfs, and the file itself of 123 B was not fetched");
      EXPECT_EQ(reading.error->where.file, std::string("in/") + path);
    }
  }
}

TEST_F(TextSource, InvalidUtf8HasAPolicy) {
  put("a.txt", "fine\ncaf\xE9 noir\n");
  const Reading refused = read({"a.txt"});
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->kind, ErrorKind::invalid);
  EXPECT_EQ(refused.error->message, "not UTF-8: byte 0xe9 at offset 8 of the text");
  EXPECT_EQ(refused.error->where, (Where{"in/a.txt", 2, 0}));
  EXPECT_EQ(texts(refused.documents.empty() ? Reading{} : Reading{refused.documents, {}, {}}), (Texts{"fine"}));

  const Reading replaced = read({"a.txt"}, {.invalid_utf8 = InvalidUtf8::replace});
  EXPECT_EQ(texts(replaced), (Texts{"fine", "caf\xEF\xBF\xBD noir"}));
  EXPECT_EQ(replaced.stats.replaced, 1);
  EXPECT_EQ(texts(read({"a.txt"}, {.invalid_utf8 = InvalidUtf8::bytes})), (Texts{"fine", "caf\xE9 noir"}));

  put("a.gz", gzip("a\nb\xFF"));
  const Reading packed = read({"a.gz"}, {.document = DocumentRule::file});
  ASSERT_TRUE(packed.error);
  EXPECT_EQ(packed.error->message, "not UTF-8: byte 0xff at offset 3 of the decompressed text");
  EXPECT_EQ(packed.error->where.line, 2);
}

TEST_F(TextSource, WhatIsNoTextIsNamed) {
  put("zeros.txt", std::string("ab\0c", 4));
  put("gzip.txt", gzip("text"));
  put("empty.txt", "");
  put("nothing.gz", gzip(""));
  const std::pair<const char*, const char*> cases[] = {{"zeros.txt", "byte 2 is NUL"},
                                                       {"gzip.txt", "gzip data, not text"},
                                                       {"empty.txt", "the file is empty"},
                                                       {"nothing.gz", "decompresses to nothing"}};
  for (const auto& [path, message] : cases) {
    const Reading reading = read({path});
    ASSERT_TRUE(reading.error) << path;
    EXPECT_NE(reading.error->message.find(message), std::string::npos) << reading.error->message;
    EXPECT_EQ(reading.error->where.file, std::string("in/") + path);
  }
  EXPECT_EQ(texts(read({"zeros.txt"}, {.invalid_utf8 = InvalidUtf8::bytes})), (Texts{std::string("ab\0c", 4)}));
  EXPECT_EQ(read({"absent.txt"}).error->kind, ErrorKind::not_found);
}

TEST_F(TextSource, ADocumentTooLongIsRefused) {
  put("a.txt", "short\n" + std::string(5000, 'x'));
  for (const DocumentRule rule : {DocumentRule::line, DocumentRule::blank_line, DocumentRule::file}) {
    const Reading reading = read({"a.txt"}, {.document = rule, .largest_document = Bytes(1000)});
    ASSERT_TRUE(reading.error) << name_of(rule);
    EXPECT_NE(reading.error->hint.find("largest_document"), std::string::npos);
  }
}

TEST_F(TextSource, PatternsExpandInOrder) {
  for (const char* path : {"t/b.txt", "t/a.txt", "t/c.md", "u/a.txt", "x.txt"}) put(path, "x");
  EXPECT_EQ(expand_files(*store_, {"x.txt", "t/*.txt"}).value(), (Texts{"x.txt", "t/a.txt", "t/b.txt"}));
  EXPECT_EQ(expand_files(*store_, {"*/a.txt"}).value(), (Texts{"t/a.txt", "u/a.txt"}));
  EXPECT_EQ(expand_files(*store_, {"t/[bc].*"}).value(), (Texts{"t/b.txt", "t/c.md"}));
  EXPECT_EQ(expand_files(*store_, {"t/*.csv"}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(expand_files(*store_, {"absent"}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(expand_files(*store_, {"t/a.txt", "t/*"}).error().kind, ErrorKind::invalid);
}

TEST_F(TextSource, AFileOfAPatternsVeryNameIsIt) {
  for (const char* path : {"data[1].txt", "data1.txt", "d[a]/x.txt", "da/x.txt", "why?.txt", "whyx.txt"})
    put(path, "x");
  EXPECT_EQ(expand_files(*store_, {"data[1].txt"}).value(), (Texts{"data[1].txt"}));
  EXPECT_EQ(expand_files(*store_, {"data[[]1].txt"}).value(), (Texts{"data[1].txt"}));
  EXPECT_EQ(expand_files(*store_, {"data[0-9].txt"}).value(), (Texts{"data1.txt"}));
  EXPECT_EQ(expand_files(*store_, {"d[a]/*.txt"}).value(), (Texts{"d[a]/x.txt"}));
  EXPECT_EQ(expand_files(*store_, {"why?.txt"}).value(), (Texts{"why?.txt"}));
  const Error none = expand_files(*store_, {"more[1].txt"}).error();
  EXPECT_NE(none.hint.find("a bracket itself is written [[]: more[[]1].txt"), std::string::npos) << none.hint;
  EXPECT_EQ(expand_files(*store_, {"more.txt"}).error().hint.find('['), std::string::npos);
}

TEST(HeldOut, DependsOnContentAndSeedOnly) {
  const std::vector<std::string> documents = made_up_documents(20'000);
  std::int64_t out = 0, moved = 0;
  for (const std::string& document : documents) {
    out += is_held_out(document, 0.05, 7) ? 1 : 0;
    moved += is_held_out(document, 0.05, 7) != is_held_out(document, 0.05, 8) ? 1 : 0;
    EXPECT_FALSE(is_held_out(document, 0, 7));
    // A larger fraction only adds documents.
    EXPECT_LE(is_held_out(document, 0.05, 7), is_held_out(document, 0.1, 7));
  }
  EXPECT_NEAR(static_cast<double>(out), 1000, 160);  // five standard deviations
  EXPECT_GT(moved, 1000);
}

}  // namespace
}  // namespace systole
