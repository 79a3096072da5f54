#include "describe/serving/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ground/base/error.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

using Pages = std::vector<std::int32_t>;

TEST(PagePool, a_beginning_that_was_computed_is_shared_until_its_pages_are_needed) {
  PagePool pool(4);
  const std::vector<PageHash> hashes{"a", "ab", "abc"};
  EXPECT_TRUE(pool.match(hashes).empty());
  Pages first;
  ASSERT_TRUE(pool.append(3, first));
  pool.publish(first[0], "a");
  pool.publish(first[1], "ab");
  Pages second = pool.match(hashes);
  EXPECT_EQ(second, Pages(first.begin(), first.begin() + 2)) << "the third is not computed";
  EXPECT_FALSE(pool.append(2, second));
  EXPECT_EQ(second.size(), 2U) << "nothing changed";
  ASSERT_TRUE(pool.append(1, second));
  EXPECT_EQ(pool.available(), 0);
  pool.release(first);
  EXPECT_EQ(pool.available(), 1) << "two of them are used by the second";
  pool.release(second);
  EXPECT_EQ(pool.available(), 4);
  Pages third;
  ASSERT_TRUE(pool.append(3, third));
  EXPECT_EQ(pool.match(hashes), Pages{first[0]}) << "the pages without tokens went first, then the end of the text";
}

TEST(PagePool, the_page_that_was_used_longest_ago_goes_first) {
  PagePool pool(3);
  for (const char* text : {"a", "b", "c"}) {
    Pages page;
    ASSERT_TRUE(pool.append(1, page));
    pool.publish(page[0], text);
    pool.release(page);
  }
  const std::vector<PageHash> a{"a"}, b{"b"}, c{"c"};
  pool.release(pool.match(a));
  Pages other;
  ASSERT_TRUE(pool.append(1, other));
  EXPECT_TRUE(pool.match(b).empty());
  EXPECT_EQ(pool.match(a).size(), 1U);
  EXPECT_EQ(pool.match(c).size(), 1U);
}

TEST(PagePool, forgets_what_was_published_and_keeps_the_pages) {
  PagePool pool(2);
  const std::vector<PageHash> a{"a"};
  Pages page;
  ASSERT_TRUE(pool.append(1, page));
  pool.publish(page[0], "a");
  EXPECT_THROW(pool.forget(), Failure) << "a sequence uses it";
  pool.release(page);
  pool.forget();
  EXPECT_TRUE(pool.match(a).empty());
  EXPECT_EQ(pool.available(), 2);
  Pages again;
  ASSERT_TRUE(pool.append(2, again));
  pool.publish(again[1], "a");
  EXPECT_EQ(pool.match(a), Pages{again[1]}) << "it can be published anew";
}

TEST(PagePool, of_two_pages_with_the_same_tokens_the_first_is_found) {
  PagePool pool(2);
  Pages one, two;
  ASSERT_TRUE(pool.append(1, one) && pool.append(1, two));
  pool.publish(one[0], "a");
  pool.publish(two[0], "a");
  const std::vector<PageHash> hashes{"a"};
  EXPECT_EQ(pool.match(hashes), one);
  pool.release(two);
  Pages again;
  ASSERT_TRUE(pool.append(1, again));
  EXPECT_EQ(again, two) << "it has no tokens that anybody could find";
}

// Random sequences that share beginnings: no page is given to two that did not ask for the same tokens, none is lost.
TEST(PagePool, random_sequences_lose_no_page_and_share_only_equal_tokens) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint32_t below) { return philox(seed, philox_counter(draws++, 0))[0] % below; };
    const std::int64_t size = 1 + draw(12);
    PagePool pool(size);
    std::map<std::int32_t, std::string> tokens;  // of the pages in use
    std::vector<std::pair<Pages, std::string>> running;
    const auto in_use = [&] {
      std::set<std::int32_t> pages;
      for (const auto& [own, text] : running) pages.insert(own.begin(), own.end());
      return static_cast<std::int64_t>(pages.size());
    };
    for (int event = 0; event < 400; ++event) {
      if (draw(2) == 0 && !running.empty()) {
        const std::size_t ended = draw(static_cast<std::uint32_t>(running.size()));
        pool.release(running[ended].first);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended));
      } else {
        std::string text;
        std::vector<PageHash> hashes;
        for (std::uint32_t n = draw(5); n > 0; --n) hashes.push_back(text += static_cast<char>('a' + draw(2)));
        Pages pages = pool.match(hashes);
        for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(tokens.at(pages[i]), hashes[i]);
        const std::size_t known = pages.size();
        if (!pool.append(static_cast<std::int64_t>(hashes.size() - known), pages)) {
          pool.release(pages);
          continue;
        }
        for (std::size_t i = known; i < pages.size(); ++i) {
          for (const auto& [own, others] : running)
            EXPECT_EQ(std::count(own.begin(), own.end(), pages[i]), 0) << "it is somebody's";
          tokens[pages[i]] = hashes[i];
          if (draw(4) > 0) pool.publish(pages[i], hashes[i]);
        }
        running.emplace_back(pages, text);
      }
      ASSERT_EQ(pool.available(), size - in_use());
    }
  }
}

}  // namespace
}  // namespace systole
