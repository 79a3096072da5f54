#include "predict/plan/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ground/base/quantity.h"
#include "predict/plan/candidate_set.h"
#include "predict/plan/layout_edit.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

class Choosing : public testing::Test {
 protected:
  ChoiceRequest asked(const std::string& targets) {
    OfferRules rules;
    rules.stack = stack_of(builtin_stacks(), "");
    ChoiceRequest request;
    request.offers = planned_offers(tables_, catalog(), std::vector<std::string>{targets}, rules).value().offers;
    request.steps = 1000;
    return request;
  }
  static const LostOption& lost(const OfferChoice& choice, std::size_t offer) {
    const auto found = std::ranges::find(choice.lost, offer, &LostOption::offer);
    CHECK(found != choice.lost.end(), "offer {} lost nowhere", offer);
    return *found;
  }
  const Workload workload_ = tiny_workload(kTinyModels[1], 4);
  const Composer composer_{workload_, target_of_accelerators()};
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(Choosing, the_edit_of_an_offer_that_lost_makes_it_win) {
  ChoiceRequest request = asked("a2-highgpu-2g:1,a2-highgpu-1g:1,v5e:1");
  for (const OfferRanking wanted : {OfferRanking::fastest, OfferRanking::cheapest}) {
    request.wanted = wanted;
    const OfferChoice choice = choose(composer_, request);
    ASSERT_TRUE(choice.chosen.has_value());
    EXPECT_GE(choice.lost.size(), 2u);
    for (const LostOption& option : choice.lost) {
      if (option.layout) continue;
      EXPECT_FALSE(option.reason.empty());
      ChoiceRequest edited = request;
      if (option.edit == "--objective cheapest") {
        edited.wanted = OfferRanking::cheapest;
      } else if (option.edit.starts_with("--budget ")) {
        edited.budget = Dollars(std::stod(option.edit.substr(9)));
      } else if (option.edit.starts_with("--deadline ")) {
        edited.deadline = parse_seconds(option.edit.substr(11)).value();
      } else {
        EXPECT_EQ(option.edit, "--on " + request.offers[option.offer].target + " alone");
        continue;
      }
      const OfferChoice now = choose(composer_, edited);
      ASSERT_TRUE(now.chosen.has_value()) << option.edit;
      EXPECT_EQ(now.chosen->offer, option.offer) << option.edit;
    }
  }
}

// With more offers than are searched one by one, another one may be faster at the same cost.
TEST_F(Choosing, of_many_offers_the_edit_is_to_ask_for_one_alone) {
  ChoiceRequest request = asked("a2-highgpu-2g:1,a2-highgpu-1g:1,v5e:1");
  request.alone = 1;
  for (const OfferRanking wanted : {OfferRanking::fastest, OfferRanking::cheapest}) {
    request.wanted = wanted;
    const OfferChoice choice = choose(composer_, request);
    ASSERT_TRUE(choice.chosen.has_value());
    for (const LostOption& option : choice.lost) {
      if (!option.layout) { EXPECT_EQ(option.edit, "--on " + request.offers[option.offer].target + " alone"); }
    }
  }
}

TEST_F(Choosing, an_unknown_price_never_wins_on_dollars) {
  ChoiceRequest request = asked("h100:2,a2-highgpu-1g:1");
  request.wanted = OfferRanking::cheapest;
  const OfferChoice choice = choose(composer_, request);
  ASSERT_TRUE(choice.chosen.has_value());
  EXPECT_EQ(request.offers[choice.chosen->offer].machine, "a2-highgpu-1g");
  EXPECT_NE(lost(choice, 0).reason.find("its price is unknown: it is not had on demand"), std::string::npos);
  EXPECT_NE(lost(choice, 0).edit.find("a price of it in a catalog of your own"), std::string::npos);
}

TEST_F(Choosing, what_is_as_good_as_the_choice_is_said_to_be) {
  ChoiceRequest request = asked("a2-highgpu-1g:1");
  request.offers.push_back(request.offers[0]);
  request.offers[0].offered.price.reset();
  const OfferChoice choice = choose(composer_, request);
  EXPECT_EQ(choice.chosen->offer, 0u);
  EXPECT_EQ(lost(choice, 1).reason, "as good; the first stands");
}

TEST_F(Choosing, limits_that_nothing_meets_say_by_how_much) {
  ChoiceRequest request = asked("a2-highgpu-2g:1");
  const OfferChoice free = choose(composer_, request);
  request.deadline = free.chosen->total * 0.5;
  const OfferChoice late = choose(composer_, request);
  EXPECT_FALSE(late.chosen.has_value());
  EXPECT_EQ(lost(late, 0).reason, "deadline missed by " + to_string(free.chosen->total - *request.deadline));
  EXPECT_EQ(lost(late, 0).edit, "--deadline " + deadline_words(free.chosen->total));
  request.deadline.reset();
  request.budget = Dollars(free.chosen->dollars->count() / 4);
  const OfferChoice dear = choose(composer_, request);
  EXPECT_FALSE(dear.chosen.has_value());
  EXPECT_EQ(lost(dear, 0).reason, "over budget by " + to_string(*free.chosen->dollars - *request.budget));
}

TEST_F(Choosing, what_does_not_fit_says_how_far_off_it_is) {
  ChoiceRequest request = asked("a2-highgpu-2g:1,a2-ultragpu-1g:1");
  request.offers[0].offered.cluster.chip.capacity = kMiB;
  const OfferChoice choice = choose(composer_, request);
  EXPECT_EQ(choice.chosen->offer, 1u);
  EXPECT_TRUE(lost(choice, 0).reason.starts_with("out of memory by ")) << lost(choice, 0).reason;
  EXPECT_FALSE(lost(choice, 0).estimated.has_value());
}

// With more offers than are searched one by one, each accelerator still shows its best, even if that misses a limit.
TEST_F(Choosing, of_many_offers_the_best_of_each_accelerator_is_shown) {
  ChoiceRequest request = asked("a2-highgpu-1g:1,a2-highgpu-2g:1,v5e:1,v5e:2x2,g2-standard-4:1,h100:2");
  request.alone = 3;
  const auto offer_of = [&](const OfferChoice& choice, const std::string& accelerator) {
    std::vector<std::size_t> offers;
    if (choice.chosen) offers.push_back(choice.chosen->offer);
    for (const LostOption& option : choice.lost)
      if (!option.layout) offers.push_back(option.offer);
    std::erase_if(offers, [&](std::size_t o) { return request.offers[o].accelerator != accelerator; });
    return offers;
  };
  std::set<std::string> accelerators;
  for (const ClusterOffer& offer : request.offers) accelerators.insert(offer.accelerator);
  ASSERT_EQ(accelerators.size(), 4u);
  const auto best_of = [&](const std::string& accelerator) {  // by each offer's own search
    std::size_t best = request.offers.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t o = 0; o < request.offers.size(); ++o) {
      if (request.offers[o].accelerator != accelerator) continue;
      const AloneResult alone = search_alone(composer_, request, request.offers[o]);
      if (alone.best && alone.best->total.count() < least) least = alone.best->total.count(), best = o;
    }
    return best;
  };
  const OfferChoice fastest = choose(composer_, request);
  for (const std::string& accelerator : accelerators)
    EXPECT_EQ(offer_of(fastest, accelerator).front(), best_of(accelerator)) << accelerator;
  EXPECT_GT(fastest.not_looked_at, 0u);
  // Without enough memory the reason says how far off it is; for a deadline that nothing meets, by how much.
  for (ClusterOffer& offer : request.offers)
    if (offer.accelerator.starts_with("v5")) offer.offered.cluster.chip.capacity = kMiB;
  request.deadline = fastest.chosen->total * 0.1;
  const OfferChoice late = choose(composer_, request);
  EXPECT_FALSE(late.chosen.has_value());
  for (const std::string& accelerator : accelerators) {
    const std::vector<std::size_t> offers = offer_of(late, accelerator);
    ASSERT_EQ(offers.size(), 1u) << accelerator;
    const char* why = accelerator.starts_with("v5") ? "out of memory by" : "deadline missed by";
    EXPECT_EQ(lost(late, offers[0]).reason.find(why), 0u) << accelerator << ": " << lost(late, offers[0]).reason;
  }
}

TEST_F(Choosing, what_the_judge_refuses_loses_and_another_is_chosen) {
  ChoiceRequest request = asked("a2-highgpu-2g:1,v5e:1");
  const OfferChoice free = choose(composer_, request);
  request.judged = 1;
  std::size_t times = 0;
  request.judge = [&](const Estimated& e) {
    return ++times <= 2 ? std::optional("too large for " + request.offers[e.offer].accelerator) : std::nullopt;
  };
  const OfferChoice judged = choose(composer_, request);
  EXPECT_EQ(times, 3u) << "until one passes";
  ASSERT_TRUE(judged.chosen.has_value());
  EXPECT_NE(judged.chosen->candidate, free.chosen->candidate);
  EXPECT_GE(judged.chosen->total, free.chosen->total);
  std::size_t refused = 0;
  for (const LostOption& option : judged.lost) {
    if (!option.refused) continue;
    ++refused;
    EXPECT_EQ(option.reason, "too large for " + request.offers[option.offer].accelerator);
    EXPECT_EQ(option.edit, "");
  }
  EXPECT_EQ(refused, 2u);
  request.judge = [](const Estimated&) { return std::optional<std::string>("no"); };
  EXPECT_FALSE(choose(composer_, request).chosen.has_value());
}

TEST_F(Choosing, the_front_is_what_nothing_beats) {
  const ChoiceRequest request = asked("a2-highgpu-2g:1,a2-ultragpu-1g:1,a2-highgpu-1g:1,v5e:1");
  const OfferChoice choice = choose(composer_, request);
  ASSERT_FALSE(choice.front.empty());
  for (std::size_t i = 1; i < choice.front.size(); ++i) {
    EXPECT_GT(choice.front[i].total, choice.front[i - 1].total);
    EXPECT_LT(*choice.front[i].dollars, *choice.front[i - 1].dollars);
  }
}

// The edits are in the form of --set, and lead to exactly the workload that was estimated.
TEST_F(Choosing, sets_of_a_layout_make_it) {
  const std::string document = to_yaml(workload_);
  const auto candidates = candidates_of(composer_, 8);
  ASSERT_FALSE(candidates.empty());
  for (const Candidate& candidate : candidates) {
    const Workload laid_out = workload_of(workload_, candidate);
    WorkloadOptions options;
    options.sets = layout_sets(workload_, laid_out);
    const Result<Workload> read = read_workload(document, "job.yaml", options);
    ASSERT_TRUE(read.ok()) << to_string(candidate) << ": " << to_string(read.error());
    EXPECT_EQ(to_yaml(*read), to_yaml(laid_out)) << to_string(candidate);
  }
}

TEST(ChoiceWords, limits_round_up) {
  EXPECT_EQ(deadline_words(Seconds(10.2)), "11s");
  EXPECT_EQ(deadline_words(Seconds(3601)), "2h");
  EXPECT_EQ(deadline_words(Seconds(86400.0 * 30)), "30d");
  EXPECT_EQ(deadline_words(Seconds(86400.0 * 30 + 1)), "30d1h");
  EXPECT_EQ(parse_seconds("30d1h").value(), Seconds(86400.0 * 30 + 3600));
  EXPECT_EQ(budget_words(Dollars(1.001)), "1.01");
  EXPECT_EQ(budget_words(Dollars(1000.2)), "1001");
}

}  // namespace
}  // namespace systole
