#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string_view>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "ground/base/clock.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/hash.h"
#include "ground/base/iso_time.h"
#include "ground/base/late_library.h"
#include "ground/base/letter_case.h"
#include "ground/base/nearest.h"
#include "ground/base/number_from.h"
#include "ground/base/os_error.h"
#include "ground/base/start_phases.h"

namespace systole {
namespace {

TEST(LetterCase, changes_letters_of_ascii_alone) {
  EXPECT_EQ(upper_case("a3-Mega_z{`\xc3\xa4"), "A3-MEGA_Z{`\xc3\xa4");
  EXPECT_EQ(upper_case(""), "");
  EXPECT_EQ(lower_case("A3-Mega_Z[@\xc3\x84"), "a3-mega_z[@\xc3\x84");
}

TEST(OsError, has_kind_reason_and_hint) {
  const Error full = os_error(ENOSPC, "write", "a/b");
  EXPECT_EQ(full.kind, ErrorKind::no_space);
  EXPECT_EQ(full.message, "cannot write 'a/b': No space left on device");
  EXPECT_FALSE(full.hint.empty());
  EXPECT_EQ(os_error(ENOENT, "x").kind, ErrorKind::not_found);
  EXPECT_EQ(os_error(EIO, "x").kind, ErrorKind::io);
  EXPECT_EQ(os_error(EROFS, "x").kind, ErrorKind::io);
  EXPECT_FALSE(os_error(EROFS, "x").hint.empty());
  EXPECT_EQ(os_read_error(ENOENT, "read", "a").message, "cannot read 'a': No such file or directory");
  EXPECT_EQ(os_error(EACCES, "connect to", "10.0.0.1:80").hint, "") << "no file refused it";
}

TEST(Errors, have_the_key_that_they_are_about_and_a_code) {
  const Error wrong = key_error(ErrorKind::invalid, "train.batch", "{} is no multiple of {}", 10, 4);
  EXPECT_EQ(wrong.message, "train.batch: 10 is no multiple of 4");
  EXPECT_EQ(wrong.key, "train.batch");
  EXPECT_EQ(wrong.code, ErrorCode::none);
  std::set<std::string_view> names;
  std::uint64_t number = 0;
  for (; const std::optional<ErrorCode> code = error_code_of(number); ++number) {
    EXPECT_EQ(static_cast<std::uint64_t>(*code), number);
    EXPECT_TRUE(names.insert(name_of(*code)).second) << name_of(*code);
  }
  EXPECT_EQ(names.size(), number);
  EXPECT_EQ(name_of(ErrorCode::flipped_bit), "flipped_bit");
  EXPECT_EQ(name_of(ErrorCode::price_unknown), "price_unknown");
}

TEST(Errors, together_are_the_first_with_all_others_flat_and_in_order) {
  std::vector<Error> errors;
  for (const char* name : {"a", "b", "c"}) {
    errors.push_back(error(ErrorKind::invalid, "{}", name));
    errors.back().others.push_back(error(ErrorKind::invalid, "{} behind", name));
  }
  const Error all = together(std::move(errors));
  EXPECT_EQ(to_string(all), "error: a\nerror: a behind\nerror: b\nerror: b behind\nerror: c\nerror: c behind");
  EXPECT_EQ(all.others.size(), 5u);
  EXPECT_EQ(together({error(ErrorKind::io, "alone")}).kind, ErrorKind::io);
}

TEST(NumberFrom, is_the_whole_text_or_nothing) {
  EXPECT_EQ(number_from("-17"), -17);
  EXPECT_EQ(number_from<double>("2.5e1"), 25.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "1.5", "9223372036854775808"})
    EXPECT_EQ(number_from(text), std::nullopt) << text;
  EXPECT_EQ(number_from<int>("2147483648"), std::nullopt);
}

TEST(Clock, a_fake_one_moves_only_when_told) {
  FakeClock clock;
  EXPECT_EQ(clock.now(), Seconds(0.0));
  EXPECT_EQ(clock.timestamp(), "2000-01-01T00:00:00.000Z");
  clock.sleep(Seconds(86'399.5));
  clock.sleep(Seconds(-1.0));
  EXPECT_EQ(clock.now(), Seconds(86'399.5));
  EXPECT_EQ(clock.timestamp(), "2000-01-01T23:59:59.500Z");
  EXPECT_EQ(clock.unix_time(), 946'684'800 + 86'399);
  EXPECT_THROW(clock.advance(Seconds(-1.0)), Failure);
}

TEST(Clock, the_real_one_goes_on) {
  const std::unique_ptr<Clock> clock = real_clock();
  const Seconds before = clock->now();
  clock->sleep(Seconds(0.002));
  EXPECT_GE((clock->now() - before).count(), 0.002);
  EXPECT_EQ(clock->timestamp().size(), 24u);
}

TEST(StartPhases, have_no_gaps_and_sum_to_the_total) {
  FakeClock clock;
  clock.advance(Seconds(8.0));
  StartPhases phases(clock, Seconds(0.5));
  clock.advance(Seconds(0.25));
  phases.end("process");
  clock.advance(Seconds(2.0));
  phases.end("read");
  EXPECT_EQ(to_json(phases.node()), R"({"process_s":0.75,"read_s":2,"total_s":2.75})");
}

TEST(Clock, prints_dates) {
  using namespace std::chrono;
  EXPECT_EQ(to_iso8601(system_clock::time_point(seconds(1'709'210'096) + milliseconds(7))), "2024-02-29T12:34:56.007Z");
  EXPECT_EQ(to_iso8601(system_clock::time_point(-milliseconds(1))), "1969-12-31T23:59:59.999Z");
}

TEST(Clock, times_are_read_as_they_are_written_and_as_others_write_them) {
  using std::chrono::system_clock, std::chrono::seconds, std::chrono::nanoseconds;
  const auto at = [](const char* text) { return from_iso8601(text).value().time_since_epoch(); };
  EXPECT_EQ(at("2024-02-29T12:34:56Z"), seconds(1'709'210'096));
  EXPECT_EQ(at("2024-02-29T12:34:56.007Z"), seconds(1'709'210'096) + nanoseconds(7'000'000));
  EXPECT_EQ(at("2024-02-29T12:34:56.123456789Z"), seconds(1'709'210'096) + nanoseconds(123'456'789));
  EXPECT_EQ(at("2024-02-29T13:34:56+01:00"), seconds(1'709'210'096));
  for (const char* wrong : {"", "2024-02-29", "2024-02-30T12:34:56Z", "2024-02-29T12:34:56", "2024-02-29T12:34:56.Z",
                            "2024-02-29T12:34:56Zx", "2024-02-29T12:34:56+1"})
    EXPECT_FALSE(from_iso8601(wrong).ok()) << wrong;
}

TEST(LateLibrary, finds_functions_by_their_names) {
  const LateLibrary library = LateLibrary::load({"libm.so.6", "libc6", "numbers have roots"}).value();
  double (*root)(double) = nullptr;
  ASSERT_TRUE(library.fill(root, "sqrt").ok());
  EXPECT_EQ(root(9), 3);
  EXPECT_EQ(library.find<double(double)>("no_such_root"), nullptr);
  const Status absent = library.fill(root, "no_such_root");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::unsupported);
  EXPECT_EQ(absent.error().message, "numbers have roots, which cannot be loaded: libm.so.6 has no no_such_root");
}

TEST(LateLibrary, one_that_is_not_there_says_who_wants_it_and_where_it_is_from) {
  const Result<LateLibrary> none = LateLibrary::load({"libnone.so.7", "libnone7", "nobody needs it"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::unsupported);
  EXPECT_TRUE(none.error().message.starts_with("nobody needs it, which cannot be loaded: libnone.so.7: "))
      << none.error().message;
  EXPECT_EQ(none.error().hint, "apt-get install libnone7");
  EXPECT_NE(LateLibrary::open("/nowhere/lib.so").error().message.find("/nowhere/lib.so"), std::string::npos);
}

TEST(Hash, in_pieces_is_the_hash_of_the_whole) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>(i * 7 + i / 256);
  Hasher hasher;
  for (std::size_t at = 0, step = 1; at < text.size(); at += step, step += 1 + step / 2)
    hasher.add(std::string_view(text).substr(at, step));
  EXPECT_EQ(hasher.digest(), hash128(text));
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

#if defined(__x86_64__)
// Bit mask of the vector register parts in use. https://www.felixcloutier.com/x86/xgetbv
[[gnu::target("xsave")]] std::uint64_t registers_in_use() { return __builtin_ia32_xgetbv(1); }

// Dirty upper halves slow down all later SSE code: planning took twice its time.
TEST(Hash, of_many_bytes_gives_back_the_upper_halves_of_vectors) {
  std::ifstream info("/proc/cpuinfo");
  const std::string flags(std::istreambuf_iterator<char>(info), {});
  if (flags.find(" xgetbv1") == flags.npos || flags.find(" avx2") == flags.npos) GTEST_SKIP() << "cannot be read here";
  constexpr std::uint64_t kUpper = (1U << 2) | (1U << 6);  // of ymm0 to ymm15, and of zmm0 to zmm15
  const std::vector<std::byte> bytes(1 << 20);
  Hasher hasher;
  hasher.add(bytes);
  EXPECT_EQ(registers_in_use() & kUpper, 0u);
  hash128(bytes);
  EXPECT_EQ(registers_in_use() & kUpper, 0u);
}
#endif

TEST(Hash, prints_as_xxhsum_does) {
  EXPECT_EQ(to_hex(hash128("")), "99aa06d3014798d86001c324468d497f");  // xxhsum -H2 of an empty file
  EXPECT_EQ(to_hex(hash64("")), "2d06800538d394c2");                   // xxhsum -H3
  EXPECT_EQ(to_hex(std::uint64_t{1}), "0000000000000001");
}

TEST(Crc32c, gives_the_published_values) {  // RFC 3720, B.4
  std::vector<std::byte> bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8a9136aau);
  for (std::byte& b : bytes) b = std::byte{0xff};
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43u);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eu);
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(crc32c(all.subspan(5), crc32c(all.first(5))), 0x46dd794eu);
}

TEST(Nearest, counts_edits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("modle", "model"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
}

// The search stops early if it can; its results equal those of a search that never does.
TEST(Nearest, are_those_of_a_search_of_all) {
  std::mt19937 random(7);
  const auto word = [&] {
    std::string made;
    for (auto left = random() % 12; left > 0; --left) made += static_cast<char>('a' + random() % 3);
    return made;
  };
  for (int round = 0; round < 500; ++round) {
    const std::string name = word();
    std::vector<std::string> names, expected;
    for (int i = 0; i < 30; ++i) names.push_back(word());
    std::vector<std::pair<int, std::string>> all;
    for (const std::string& candidate : names) {
      const int longer = static_cast<int>(std::max(name.size(), candidate.size()));
      const int distance = edit_distance(name, candidate);
      if (candidate != name && distance <= std::max(1, longer / 3) && distance < longer)
        all.emplace_back(distance, candidate);
    }
    std::ranges::stable_sort(all, {}, &std::pair<int, std::string>::first);
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 3); ++i) expected.push_back(all[i].second);
    EXPECT_EQ(nearest(name, names), expected) << name;
  }
}

TEST(Nearest, hints) {
  const std::vector<std::string> keys{"mesh", "model", "name", "train"};
  EXPECT_EQ(nearest_hint("modle", keys), "did you mean 'model'?");
  EXPECT_EQ(nearest_hint("MODEL", keys), "did you mean 'model'?");
  EXPECT_EQ(nearest_hint("xyzzy", keys), "valid: mesh, model, name, train");
  EXPECT_EQ(nearest_hint("x", {}), "");
  const std::vector<std::string> machines{"n1-standard-4", "a3-highgpu-8g", "a3-megagpu-8g", "a3-highgpu-1g"};
  EXPECT_EQ(nearest_hint("a3-hihg", machines), "did you mean 'a3-highgpu-8g' or 'a3-highgpu-1g'?");
  EXPECT_EQ(nearest_hint("a3", machines), "valid: n1-standard-4, a3-highgpu-8g, a3-megagpu-8g, a3-highgpu-1g");
  const std::vector<std::string> many(20, "longname");
  EXPECT_NE(nearest_hint("q", many).find(", ..."), std::string::npos);
  EXPECT_EQ(nearest("tain", keys), (std::vector<std::string>{"train"}));
}

TEST(Counted, has_the_noun_that_goes_with_the_number) {
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(std::size_t{2000}, "chunk file"), "2,000 chunk files");
  EXPECT_EQ(counted(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(counted(3, "microbatch"), "3 microbatches");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "day"), "2 days");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(2, "axis"), "2 axes");
  EXPECT_EQ(noun_for(1, "GPU"), "GPU");
}

// A hint never suggests the refused name, nor a name that shares no letter with it.
TEST(Nearest, never_gives_the_name_back) {
  const std::vector<std::string> keys{"mesh", "modes", "model", ""};
  EXPECT_EQ(nearest("model", keys), (std::vector<std::string>{"modes"}));
  EXPECT_EQ(nearest_hint("model", keys), "did you mean 'modes'?");
  EXPECT_EQ(nearest_hint("MODEL", std::vector<std::string>{"model"}), "did you mean 'model'?");
  EXPECT_EQ(nearest_hint("n1-standard-4", std::vector<std::string>{"n1-standard-4", "a2", "g2"}), "valid: a2, g2");
  EXPECT_EQ(nearest_hint("model", std::vector<std::string>{"model"}), "");
  EXPECT_EQ(nearest("6", keys), (std::vector<std::string>{}));
  EXPECT_EQ(nearest("6", std::vector<std::string>{"q"}), (std::vector<std::string>{}));
}

}  // namespace
}  // namespace systole
