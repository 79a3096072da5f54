#pragma once

#include <string_view>

namespace systole {

bool is_bucket_uri(std::string_view text);  // "gs://…", "s3://…": a scheme other than file

}  // namespace systole
