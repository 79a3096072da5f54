#include "operate/import/gcloud_filestore.h"

#include <algorithm>

#include "ground/base/letter_case.h"
#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_lists.h"

namespace systole {
namespace {

struct Tier {
  std::string_view gcloud, volume;
};
constexpr Tier kTiers[] = {
    {"ZONAL", "zonal"},         {"HIGH_SCALE_SSD", "zonal"}, {"REGIONAL", "regional"},   {"ENTERPRISE", "regional"},
    {"BASIC_HDD", "basic-hdd"}, {"STANDARD", "basic-hdd"},   {"BASIC_SSD", "basic-ssd"}, {"PREMIUM", "basic-ssd"},
};

// "high-scale-ssd" becomes "HIGH_SCALE_SSD".
std::string enum_name(std::string_view text) {
  std::string name = upper_case(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

// gcloud uses powers of two, whatever the unit's name: "10TB" is 10 TiB, "2560" and "2560GB" are GiB.
std::string size_of(const std::string& capacity) {
  const std::size_t digits = std::min(capacity.find_first_not_of("0123456789"), capacity.size());
  const std::string unit = upper_case(capacity.substr(digits));
  if (digits == 0 || digits > 9) return "";
  if (unit.empty() || unit == "GB" || unit == "GIB") return capacity.substr(0, digits) + "GiB";
  return unit == "TB" || unit == "TIB" ? capacity.substr(0, digits) + "TiB" : "";
}

bool is_folder_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Why a volume has no key for the flag.
std::string_view why_not(const ParsedFlag& flag) {
  if (flag.name == "network") return "GKE makes it in the cluster's network: gke.network";
  if (flag.name == "project") return "GKE makes it in the cluster's project: gke.project";
  if (flag.name == "zone" || flag.name == "region" || flag.name == "location")
    return "GKE makes it where the cluster is: gke.location";
  return flag.why;
}

}  // namespace

void read_filestore(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft) {
  const ParsedFlag *tier = last_flag(seen, "tier"), *share = last_flag(seen, "file-share");
  for (const ParsedFlag& flag : seen)
    if (&flag != tier && &flag != share) draft.left_out(flag.value.from, std::string(why_not(flag)));
  if (tier == nullptr || share == nullptr || tier->expands || share->expands)
    return draft.left_out(line, "a volume of Filestore's has a tier and a size: volumes");
  std::string name, size;
  for (const auto& [key, said] : gcloud_map(share->value.text)) {
    if (key == "name") name = said;
    if (key == "capacity") size = size_of(said);
    if (key != "name" && key != "capacity")
      draft.left_out("--file-share " + key + "=" + said, "GKE's driver takes a tier and a size alone");
  }
  const auto known = std::ranges::find(kTiers, enum_name(tier->value.text), &Tier::gcloud);
  const std::size_t before = draft.num_errors();
  const auto wrong = [&](const std::string& from, std::string_view what, std::string_view hint) {
    draft.wrong(error(ErrorKind::invalid, "{}: {}", from, what).hinted(std::string(hint)));
  };
  if (known == std::end(kTiers)) wrong(tier->value.from, "no tier of Filestore's", "--tier=ZONAL");
  if (!is_folder_name(name))
    wrong(share->value.from, "the name is no folder's: letters, digits and '_'",
          "--file-share=name=data,capacity=10TB");
  if (size.empty())
    wrong(share->value.from, "the capacity is no whole number of GB or TB", "--file-share=name=data,capacity=10TB");
  if (draft.num_errors() > before) return;
  const std::string path = "/mnt/" + name;
  draft.set_volume(path,
                   {{"filestore", std::string(known->volume), tier->value.from}, {"size", size, share->value.from}});
  draft.note(share->value.from, "a new one is mounted at " + path +
                                    ", and the path of volumes may be another; nfs: SERVER:/" + name +
                                    " there mounts one that is made already");
}

}  // namespace systole
