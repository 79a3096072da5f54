#pragma once
// The topics by group. Private to this folder.

#include <span>

#include "operate/explain/topic.h"

namespace systole {

std::span<const Topic> idea_topics();
std::span<const Topic> feature_topics();
std::span<const Topic> question_topics();
std::span<const Topic> term_topics();

}  // namespace systole
