#include "ground/catalog/price.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

Result<CatalogTables> tables(const std::string& text, const char* file = "prices.csv") {
  return CatalogTables::read(std::vector<CatalogFile>{{file, text}});
}

const char* const kHeader = "per,item,region,unit,on_demand,source,date\n";

PriceRow row(const std::string& cells) {
  CatalogTables read = tables(kHeader + cells).value();
  return read.prices().value().back();
}

void expect_refused(const std::string& text, const char* says, const char* hint = "", const char* file = "prices.csv") {
  const auto refused = tables(text, file);
  ASSERT_FALSE(refused.ok()) << text;
  EXPECT_NE(to_string(refused.error()).find(says), std::string::npos) << to_string(refused.error());
  EXPECT_NE(to_string(refused.error()).find(hint), std::string::npos) << to_string(refused.error());
}

Price known(double amount, const char* date = "2026-07-30") {
  Price price;
  price.amount = DollarsPerHour(amount);
  price.of = "a";
  price.dated = {"list", date, "high", {}, false};
  return price;
}

// All defects of a price file, each with its place and a hint.
TEST(PriceFile, mutants_are_refused) {
  const std::string good = "machine,m,r,$/h,2.5,s,2026-01-01\n";
  ASSERT_TRUE(tables(kHeader + good).ok());
  expect_refused(kHeader + std::string("machine,m,r,$/month,2.5,s,2026-01-01\n"),
                 "prices.csv:2:13: error: prices are in $/h, and these in '$/month'", "hint: $2.50/h");
  expect_refused(kHeader + std::string("machine,m,r,EUR/h,2.5,s,2026-01-01\n"), "and these in 'EUR/h'", "converted");
  expect_refused(kHeader + std::string("machine,m,r,,2.5,s,2026-01-01\n"),
                 "prices.csv:2:14: error: on_demand: '2.5' has no unit");
  expect_refused(kHeader + std::string("machine,m,r,$/h,-2.5,s,2026-01-01\n"),
                 "prices.csv:2:17: error: on_demand: a negative price, -2.5");
  expect_refused(kHeader + std::string("machine,m,r,$/h,,s,2026-01-01\n"), "prices.csv:2:17: error: no price of m",
                 "unknown");
  expect_refused(kHeader + std::string("machine,m,r,$/h,0,s,2026-01-01\n"), "on_demand: a price of 0", "'unknown'");
  expect_refused(kHeader + std::string("machine,m,r,$/h,cheap,s,2026-01-01\n"), "'cheap' is no price by the hour");
  expect_refused(kHeader + std::string("machine,m,r,$/h,nan,s,2026-01-01\n"), "'nan' is no price");
  expect_refused(kHeader + std::string("machine,m,r,$/h,$2.5,s,2026-01-01\n"), "'$2.5' is no price by the hour");
  expect_refused(kHeader + std::string("machine,m,r,$/h,$-1/h,s,2026-01-01\n"), "a negative price, $-1/h");
  expect_refused(kHeader + std::string("machine,,r,$/h,2.5,s,2026-01-01\n"), "prices.csv:2:9: error: 'item' is empty");
  expect_refused(kHeader + std::string("mashine,m,r,$/h,2.5,s,2026-01-01\n"), "'mashine' is none of",
                 "did you mean 'machine'");
  expect_refused(kHeader + std::string("machine,m,r,$/h,2.5,,2026-01-01\n"), "'source' is empty");
  expect_refused(kHeader + std::string("machine,m,r,$/h,2.5,s,\n"), "'date' is empty");
  expect_refused(kHeader + std::string("machine,m,r,$/h,2.5,s,2026-13-01\n"),
                 "prices.csv:2:23: error: '2026-13-01' is no date");
  expect_refused("per,item,region,on_demand,date\n", "prices.csv:1:1: error: missing column: source");
  expect_refused("item,region,on_demand\n", "missing columns: per, source, date");
  expect_refused("per,item,region,on_demand,sauce,date\n", "prices.csv:1:27: error: unknown column 'sauce'",
                 "'source'");
  expect_refused(kHeader + std::string("machine,m,r,$/h,2.5,s\n"), "prices.csv:2:1: error: this row has 6 fields");
}

TEST(PriceFile, the_same_in_yaml) {
  const auto yaml = [](const std::string& row) { return "systole_catalog: 1\nprices:\n  - " + row + "\n"; };
  const std::string good = "{ per: machine, item: m, region: r, on_demand: $2.5/h, source: s, date: 2026-01-01 }";
  CatalogTables read = tables(yaml(good), "own.yaml").value();
  EXPECT_EQ(read.prices().value().back().cell(Provisioning::on_demand).amount, DollarsPerHour(2.5));
  EXPECT_TRUE(read.prices().value().back().dated.own);
  const auto with = [&](const char* was, const char* is) {
    std::string text = good;
    return yaml(text.replace(text.find(was), std::string(was).size(), is));
  };
  expect_refused(with("$2.5/h", "$2.5"), "own.yaml:3:52: error: on_demand: '$2.5' is no price by the hour", "$2.50/h",
                 "own.yaml");
  expect_refused(with("$2.5/h", "2.5 EUR/h"), "is no price by the hour", "converted", "own.yaml");
  expect_refused(with("$2.5/h", "-1"), "a negative price", "", "own.yaml");
  expect_refused(with(", on_demand: $2.5/h", ""), "no price of m", "unknown", "own.yaml");
  expect_refused(with("source: s, ", ""), "own.yaml:3:5: error: 'source' is missing", "", "own.yaml");
  expect_refused(with("on_demand", "on_demmand"), "prices have no 'on_demmand'", "did you mean 'on_demand'",
                 "own.yaml");
  EXPECT_TRUE(tables(with("on_demand: $2.5/h", "own: $0/h"), "own.yaml").ok());
}

TEST(Price, unknown_is_a_state_of_its_own) {
  const PriceRow unknown = row("machine,m,r,,unknown,s,2026-01-01\n");
  EXPECT_TRUE(unknown.cell(Provisioning::on_demand).stated);
  EXPECT_FALSE(unknown.cell(Provisioning::on_demand).amount);
  EXPECT_FALSE(unknown.cell(Provisioning::spot).stated);
  const Price price = price_of(&unknown, {PriceOf::machine, "m", "r", ""}, "m");
  EXPECT_EQ(to_string(price), "unknown");
  EXPECT_EQ(price.dated.source, "s");
  const Price none = price_of(nullptr, {PriceOf::machine, "m", "r", ""}, "m");
  EXPECT_EQ(to_string(none), "unknown");
  EXPECT_EQ(none.note, "no list names its price");
}

TEST(Price, unknown_never_wins) {
  const Price one = known(1), two = known(2), none;
  EXPECT_TRUE(costs_less(one, two));
  EXPECT_FALSE(costs_less(two, one));
  EXPECT_FALSE(costs_less(one, one));
  EXPECT_TRUE(costs_less(two, none));
  EXPECT_FALSE(costs_less(none, two));
  EXPECT_FALSE(costs_less(none, none));
  EXPECT_FALSE(costs_less(none, known(0)));
}

TEST(Price, sums_are_known_where_both_are_and_as_old_as_the_older) {
  Price part = known(0.35, "2026-07-09");
  part.of = "b";
  const Price both = sum(known(0.19), part);
  EXPECT_DOUBLE_EQ(both.amount->count(), 0.54);
  EXPECT_EQ(both.of, "a + b");
  EXPECT_EQ(both.dated.date, "2026-07-09");
  EXPECT_FALSE(sum(known(1), Price{}).known());
  EXPECT_FALSE(sum(Price{}, known(1)).known());
}

TEST(Price, the_row_that_answers) {
  const std::vector<PriceRow> rows = {
      row("machine,m,r,$/h,3,old,2026-01-01\n"),          row("machine,m,r,$/h,4,new,2026-07\n"),
      row("machine,m,r,$/h,unknown,newest,2026-08-01\n"), row("chip,m,r,$/h,1,s,2026-09-01\n"),
      row("machine,m,elsewhere,$/h,1,s,2026-09-01\n"),
  };
  std::vector<const PriceRow*> all;
  for (const PriceRow& one : rows) all.push_back(&one);
  const PriceQuery query{PriceOf::machine, "m", "r", ""};
  EXPECT_EQ(find_price_row(all, query)->dated.source, "new");
  PriceQuery spot = query;
  spot.provisioning = Provisioning::spot;
  EXPECT_EQ(find_price_row(all, spot), nullptr);
  std::vector<PriceRow> without_own = rows;
  for (std::size_t i : {0U, 2U, 3U, 4U}) without_own[i].dated.own = false;
  without_own[1].dated.own = false;
  without_own[0].dated.own = true;
  for (std::size_t i = 0; i < rows.size(); ++i) all[i] = &without_own[i];
  EXPECT_EQ(find_price_row(all, query)->dated.source, "old") << "the user's goes first";
}

TEST(Price, a_row_for_so_many) {
  PriceRow two = row("gpu,t4,r,$/h,0.7,s,2026-01-01\n");
  two.count = 2;
  const PriceQuery query{PriceOf::gpu, "t4", "r", "", {}, 4};
  EXPECT_DOUBLE_EQ(price_of(&two, query, "4 x t4").amount->count(), 1.4);
}

TEST(Price, is_printed_to_the_cent) {
  EXPECT_EQ(to_string(DollarsPerHour(88.490000119)), "$88.49/h");
  EXPECT_EQ(to_string(DollarsPerHour(0.0335)), "$0.0335/h");
  EXPECT_EQ(to_string(DollarsPerHour(0)), "$0.00/h");
}

}  // namespace
}  // namespace systole
