#pragma once
// Answers from the facts at hand, by topic. Private to this folder.

#include "operate/explain/topic.h"

namespace systole::answers {

Status mfu(const TopicFacts& facts, TopicAnswer& lines);
Status roofline(const TopicFacts& facts, TopicAnswer& lines);
Status memory(const TopicFacts& facts, TopicAnswer& lines);
Status recompute(const TopicFacts& facts, TopicAnswer& lines);
Status batch(const TopicFacts& facts, TopicAnswer& lines);
Status mesh(const TopicFacts& facts, TopicAnswer& lines);
Status fsdp(const TopicFacts& facts, TopicAnswer& lines);
Status precision(const TopicFacts& facts, TopicAnswer& lines);
Status checkpoint(const TopicFacts& facts, TopicAnswer& lines);
Status exact(const TopicFacts& facts, TopicAnswer& lines);
Status slow(const TopicFacts& facts, TopicAnswer& lines);
Status scaling(const TopicFacts& facts, TopicAnswer& lines);

// From the catalog.
Status peaks(const TopicFacts& facts, TopicAnswer& lines);         // peak rates of the workload's chip, by type
Status accelerators(const TopicFacts& facts, TopicAnswer& lines);  // gpus and tpus
Status gpus(const TopicFacts& facts, TopicAnswer& lines);
Status tpus(const TopicFacts& facts, TopicAnswer& lines);
Status spot(const TopicFacts& facts, TopicAnswer& lines);
Status prices(const TopicFacts& facts, TopicAnswer& lines);  // of the current machine, on all terms
Status cost(const TopicFacts& facts, TopicAnswer& lines);
Status storage(const TopicFacts& facts, TopicAnswer& lines);
Status network(const TopicFacts& facts, TopicAnswer& lines);
Status quota(const TopicFacts& facts, TopicAnswer& lines);
Status egress(const TopicFacts& facts, TopicAnswer& lines);

// About keys that name a place.
Status target(const TopicFacts& facts, TopicAnswer& lines);  // which targets its keys imply
Status secrets(const TopicFacts& facts, TopicAnswer& lines);

}  // namespace systole::answers
