// `systole catalog`: its tables, and its messages for wrong arguments and files.

#include <gtest/gtest.h>

#include <algorithm>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

Captured catalog(const SystoleRunner& systole, std::vector<std::string> words) {
  words.insert(words.begin(), "catalog");
  return systole.run(std::move(words));
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    most = std::max(most, end - at);
    at = end + 1;
  }
  return most;
}

TEST(CatalogCommand, compares_in_one_type_with_source_and_date) {
  const SystoleRunner systole;
  const Captured text = catalog(systole, {"compare", "v5p", "h100", "gb200"});
  EXPECT_EQ(text.exit.code, 0) << text.err;
  for (const char* part : {"bf16, dense", "459 TFLOP/s [1]", "989 TFLOP/s", "$4.20/h", "$11.06/h", "unknown",
                           "393 PFLOP", "322 PFLOP", "[1] 2026-08-26: docs.cloud.google.com/tpu/docs/v5p, dense"})
    EXPECT_TRUE(says(text.out, part)) << part << "\n" << text.out;
  const Captured json = catalog(systole, {"compare", "v5p", "a100", "--dtype", "fp8", "--json"});
  const Node document = parse_json(json.out, "compare").value();
  const auto chips = document.find("accelerators")->items();
  ASSERT_EQ(chips.size(), 2U);
  EXPECT_EQ(chips[0].find("peak")->find("flops_per_second")->as_double().value(), 459e12);
  EXPECT_EQ(chips[0].find("peak")->find("date")->text(), "2026-08-26");
  EXPECT_TRUE(chips[1].find("peak")->is_null()) << "an A100 has no fp8";
  EXPECT_TRUE(chips[1].find("flops_per_dollar")->is_null());
  EXPECT_GT(chips[1].find("price")->find("dollars_per_chip_hour")->as_double().value(), 0);
}

TEST(CatalogCommand, tables_fit_a_hundred_columns) {
  const SystoleRunner systole;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"accelerators"},
                                             {"accelerators", "h100"},
                                             {"machines"},
                                             {"machines", "a3-megagpu-8g"},
                                             {"machines", "ct6e-standard-8t"},
                                             {"slices"},
                                             {"slices", "v5p-17920"},
                                             {"zones"},
                                             {"prices", "--all"},
                                             {"compare", "gb200", "rtx-pro-6000", "a100-40gb", "tpu7x"}}) {
    const Captured shown = catalog(systole, words);
    EXPECT_EQ(shown.exit.code, 0) << shown.err;
    EXPECT_LE(widest(shown.out), 100U) << words.front() << " " << words.back();
    EXPECT_GT(widest(shown.out), 40U) << words.front();
    std::vector<std::string> json = words;
    json.emplace_back("--json");
    const Captured document = catalog(systole, json);
    EXPECT_TRUE(parse_json(document.out, words.front()).ok()) << words.front();
  }
}

TEST(CatalogCommand, filters) {
  const SystoleRunner systole;
  const Captured l4 = catalog(systole, {"machines", "--accelerator", "nvidia-l4"});
  EXPECT_TRUE(says(l4.out, "g2-standard-96") && !says(l4.out, "a3-") && !says(l4.out, "this-machine")) << l4.out;
  const Captured all = catalog(systole, {"machines"});
  EXPECT_TRUE(says(all.out, "this-machine")) << all.out;
  const Captured a3 = catalog(systole, {"prices", "--machine", "a3-*", "--region", "us-central1", "--max-price", "30"});
  EXPECT_TRUE(says(a3.out, "a3-highgpu-1g") && !says(a3.out, "a3-ultragpu-8g") && !says(a3.out, "europe")) << a3.out;
  const Captured zone = catalog(systole, {"zones", "--accelerator", "v6e", "--zone", "us-east5-b"});
  EXPECT_TRUE(says(zone.out, "us-east5-b") && !says(zone.out, "us-east5-a") && says(zone.out, "yes")) << zone.out;
  const Captured small = catalog(systole, {"slices", "--accelerator", "v5p", "--max-chips", "8"});
  EXPECT_TRUE(says(small.out, "v5p-16") && !says(small.out, "v5p-32") && !says(small.out, "v6e:")) << small.out;
  const Captured unknown = catalog(systole, {"prices", "--accelerator", "v6e", "--zone", "asia-east1-c"});
  EXPECT_TRUE(says(unknown.out, "unknown") && !says(unknown.out, "0.00")) << unknown.out;
  const Captured gone = catalog(systole, {"prices", "--machine", "a2-highgpu-1g", "--region", "europe-west2"});
  EXPECT_TRUE(says(gone.out, "it is unknown, which is not 0") && says(gone.out, "1 more of regions")) << gone.out;
  EXPECT_TRUE(says(catalog(systole, {"slices", "v5p-128"}).out, "v5p:4x4x4"));
}

// An attachable accelerator is requested with its machine.
TEST(CatalogCommand, an_accelerator_that_is_attached) {
  const SystoleRunner systole;
  const Captured machines = catalog(systole, {"machines", "n1-standard-4", "--accelerator", "t4"});
  EXPECT_TRUE(says(machines.out, "n1-*+1xt4") && says(machines.out, "n1-*+4xt4")) << machines.out << machines.err;
  EXPECT_FALSE(says(machines.out, "v100")) << machines.out;
  const Captured prices = catalog(
      systole, {"prices", "--machine", "n1-standard-4", "--accelerator", "Tesla T4", "--region", "us-central1"});
  EXPECT_TRUE(says(prices.out, "n1-standard-4") && says(prices.out, "+ 1 x t4")) << prices.out << prices.err;
  EXPECT_TRUE(says(catalog(systole, {"accelerators", "Tesla T4"}).out, "NVIDIA T4"));
  EXPECT_TRUE(says(catalog(systole, {"slices", "v5e-4"}).out, "v5litepod-4"));
}

// Each machine has its own network rate, not that of the largest of its family; a TPU has several links.
TEST(CatalogCommand, figures_of_a_row_are_of_one_thing) {
  const SystoleRunner systole;
  for (const auto& [machine, gbits] :
       {std::pair("g2-standard-8", "16"), std::pair("g2-standard-4", "10"), std::pair("g2-standard-24", "16"),
        std::pair("g2-standard-96", "12.5"), std::pair("a2-megagpu-16g", "6.25"), std::pair("a3-highgpu-8g", "100")}) {
    const std::string told = catalog(systole, {"machines", machine}).out;
    EXPECT_TRUE(says(told, fmt::format(", {} Gbit/s an accelerator", gbits))) << told;
  }
  EXPECT_FALSE(says(catalog(systole, {"machines", "a3-highgpu-1g"}).out, "measured"));
  const std::string compared = catalog(systole, {"compare", "v5p", "v5e", "h100"}).out;
  EXPECT_TRUE(says(compared, "540 GB/s") && says(compared, "6 of 90.0 GB/s")) << compared;
  EXPECT_TRUE(says(compared, "180 GB/s") && says(compared, "450 GB/s") && says(compared, "NVLink")) << compared;
  const std::string prices = catalog(systole, {"prices", "--machine", "a3-highgpu-*g", "--region", "us-central1"}).out;
  EXPECT_TRUE(says(prices, "^11.06") && says(prices, "^: listed, but the machine is not had on demand")) << prices;
}

TEST(CatalogCommand, wrong_questions_are_refused_with_the_nearest_names) {
  const SystoleRunner systole;
  const struct {
    std::vector<std::string> words;
    const char *what, *hint;
  } kWrong[] = {
      {{"accelerators", "h1000"}, "knows no accelerator 'h1000'", "'h100'"},
      {{"compare", "v5p", "h1000"}, "knows no accelerator 'h1000'", "'h100'"},
      {{"compare", "v5p", "h100", "--dtype", "bf61"}, "no peaks are stated of 'bf61'", "'bf16'"},
      {{"slices", "v5p:4x4x5"}, "there is no slice v5p:4x4x5", "v5p:4x4x4"},
      {{"slices", "v5p-120"}, "no slice is called 'v5p-120'", "'v5p-128'"},
      {{"machines", "n1-standard-4", "--accelerator", "l4"}, "n1-standard-4 cannot have l4", "g2-standard-4"},
      {{"machines", "a3-highpu-8g"}, "no machine type is called 'a3-highpu-8g'", "'a3-highgpu-8g'"},
      {{"zones", "--region", "us-central"}, "knows no region 'us-central'", "'us-central1'"},
      {{"prices", "--region", "us-central"}, "no price names the region 'us-central'", "'us-central1'"},
      {{"prices", "--machine", "a3-highgpu-9g"}, "no price names the machine", "'a3-highgpu-1g'"},
  };
  for (const auto& wrong : kWrong) {
    const Captured refused = catalog(systole, wrong.words);
    EXPECT_EQ(refused.exit.code, 2) << wrong.what;
    EXPECT_TRUE(says(refused.err, wrong.what) && says(refused.err, wrong.hint)) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

// The user's files overlay the built-in catalog; errors in them are reported at their position.
TEST(CatalogCommand, the_users_files) {
  const SystoleRunner systole;
  const std::string folder = ".config/systole/catalog/";
  systole.write(
      folder + "prices.csv",
      "per,item,region,unit,on_demand,source,date\nmachine,a3-highgpu-8g,us-central1,$/h,16,mine,2026-01-01\n");
  const Captured mine = catalog(systole, {"compare", "h100", "v5p"});
  EXPECT_TRUE(says(mine.out, "$2.00/h") && says(mine.out, "2026-01-01: mine")) << mine.out << mine.err;
  systole.write(folder + "mine.yaml",
                "systole_catalog: 1\n"
                "machines:\n"
                "  - { machine: dgx, kind: gpu, accelerator: h100, accelerators: 8, zones: [lab], source: us, date: "
                "2026-11-01 }\n"
                "prices:\n"
                "  - { per: machine, item: dgx, region: lab, own: $12/h, source: us, date: 2026-11-01 }\n");
  const Captured own = catalog(systole, {"compare", "h100", "v5p"});
  EXPECT_TRUE(says(own.out, "$1.50/h own") && says(own.out, "lab")) << own.out << own.err;
  EXPECT_TRUE(says(catalog(systole, {"machines", "dgx"}).out, "8 x h100"));
  const std::pair<const char*, const char*> kWrong[] = {
      {"per,item,region,unit,on_demand,source,date\nmachine,m,r,$/month,5,s,2026-01-01\n",
       "prices.csv:2:13: error: prices are in $/h, and these in '$/month'"},
      {"per,item,region,unit,on_demand,source,date\nmachine,m,r,$/h,-5,s,2026-01-01\n",
       "prices.csv:2:17: error: on_demand: a negative price, -5"},
      {"per,item,region,unit,on_demand,source,date\nmachine,m,r,$/h,,s,2026-01-01\n",
       "prices.csv:2:17: error: no price of m"},
      {"per,item,unit,on_demand\n", "prices.csv:1:1: error: missing columns: region, source, date"},
  };
  for (const auto& [text, error] : kWrong) {
    systole.write(folder + "prices.csv", text);
    const Captured refused = catalog(systole, {"prices"});
    EXPECT_EQ(refused.exit.code, 2) << text;
    EXPECT_TRUE(says(refused.err, error) && says(refused.err, "hint:")) << refused.err;
  }
}

// In this test's year or later, prices of July 2026 are old, and are marked as old.
TEST(CatalogCommand, old_figures_are_marked) {
  const SystoleRunner systole;
  const Node document =
      parse_json(catalog(systole, {"prices", "--machine", "a2-highgpu-1g", "--json"}).out, "prices").value();
  const std::string today = document.find("today")->text();
  ASSERT_FALSE(document.find("prices")->items().empty());
  for (const Node& row : document.find("prices")->items()) {
    EXPECT_EQ(row.find("date")->text(), "2026-07-30");
    EXPECT_EQ(row.find("old")->as_bool().value(), row.find("days_old")->as_int().value() > 90);
  }
  const bool old = today > "2026-10-28";
  EXPECT_EQ(says(catalog(systole, {"prices", "--machine", "a2-highgpu-1g"}).out, "* old on " + today), old);
}

}  // namespace
}  // namespace systole::cli
