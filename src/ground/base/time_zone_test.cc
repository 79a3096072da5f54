#include "ground/base/time_zone.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <random>

namespace systole {
namespace {

// The C library's answer.
std::int64_t offset_by_libc(std::int64_t time) {
  const std::time_t moment = time;
  std::tm local{};
  localtime_r(&moment, &local);
  return local.tm_gmtoff;
}

class Zones : public testing::TestWithParam<const char*> {
 protected:
  ~Zones() override {
    unsetenv("TZ");
    tzset();
  }
};

TEST_P(Zones, equal_the_c_librarys_from_1902_to_2400) {
  const TimeZone zone = TimeZone::named(GetParam()).value();
  setenv("TZ", GetParam(), 1);
  tzset();
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> times(-2'145'916'800, 13'569'465'600);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t time = times(random);
    ASSERT_EQ(zone.offset(time), offset_by_libc(time)) << GetParam() << " at " << time;
  }
  // A change is where the offset changes, and no other one lies before it.
  std::int64_t at = 1'500'000'000;
  for (int i = 0; i < 150; ++i) {
    const std::optional<std::int64_t> next = zone.next_change(at);
    if (!next) {
      EXPECT_EQ(zone.offset(at), offset_by_libc(at + 40LL * 365 * 86'400));
      break;
    }
    ASSERT_NE(offset_by_libc(*next - 1), offset_by_libc(*next)) << *next;
    for (std::int64_t between = at; between < *next; between += 86'400)
      ASSERT_EQ(offset_by_libc(between), offset_by_libc(*next - 1)) << between;
    at = *next;
  }
}

INSTANTIATE_TEST_SUITE_P(all, Zones,
                         testing::Values("UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "Asia/Kolkata",
                                         "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia",
                                         "Africa/Casablanca", "Asia/Gaza", "America/Nuuk", "Pacific/Chatham"));

TEST(TimeZone, says_which_name_is_near) {
  const auto none = TimeZone::named("Europe/Berlim");
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(none.error().hint.starts_with("did you mean 'Europe/Berlin' or")) << none.error().hint;
  EXPECT_FALSE(TimeZone::named("../../../etc/passwd").ok());
  EXPECT_FALSE(TimeZone::named("tzdata.zi").ok());
  EXPECT_EQ(TimeZone::named("Europe/Rome", "/nowhere").error().kind, ErrorKind::not_found);
}

TEST(TimeZone, refuses_what_is_no_file_of_one) {
  for (const std::string& bytes : {std::string(), std::string("TZif"), "TZif2" + std::string(39, '\0'),
                                   "TZif2" + std::string(39, '\xff'), "TZif" + std::string(200, '\0')})
    EXPECT_FALSE(TimeZone::parse("x", bytes).ok()) << bytes.size();
}

}  // namespace
}  // namespace systole
