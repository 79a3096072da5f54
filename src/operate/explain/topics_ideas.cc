// Ideas of training and planning.
#include "operate/explain/answers.h"
#include "operate/explain/topic_lists.h"

namespace systole {
namespace {

constexpr Topic kTopics[] = {
    {"mfu", "utilisation utilization hfu", "Model FLOPs utilisation (MFU)", TopicGroup::idea, false, true,
     "Model FLOPs utilisation is the share of a chip's peak that a training step puts to use: model "
     "FLOPs over time, divided by the peak of the type it computes in. Model FLOPs are 6 for each "
     "matmul parameter and token, plus the causal half of attention. Recomputation does not count. "
     "The peak is the dense rate of one chip and one type, with source and date. On a calibrated "
     "machine the figure is the share of its measured matmul rate. A figure above 100% means a "
     "wrong input, so it is withheld.",
     "train.precision.compute train.batch train.recompute", "roofline slow", answers::mfu},
    {"roofline", "compute-bound memory-bound", "Roofline", TopicGroup::idea, false, true,
     "The roofline model predicts the time of an op as the longer of two: its FLOPs divided by the "
     "rate of arithmetic, and its bytes divided by the memory bandwidth. If arithmetic takes "
     "longer, the op is compute-bound, else memory-bound. Matrix products are mostly compute-bound, "
     "elementwise ops memory-bound.",
     "train.precision.compute train.batch", "mfu slow", answers::roofline},
    {"memory", "oom", "Memory of a training run", TopicGroup::idea, false, true,
     "Memory of a training run is planned before anything is allocated, byte by byte with an "
     "owner: parameters, gradients, the optimizer's state, residuals (what the forward pass keeps "
     "for the backward pass), activations, staging for checkpoints, data, libraries. What does not "
     "fit is refused before the start, with edits that fit.",
     "resources.memory train.batch train.microbatches train.recompute checkpoint.asynchronous",
     "recompute fsdp microbatches", answers::memory},
    {"recompute", "activation-checkpointing rematerialization remat", "Recomputing activations", TopicGroup::idea,
     false, true,
     "Recomputing activations means that the backward pass computes values of the forward pass "
     "again, instead of keeping them in memory. It saves residuals and costs FLOPs. The result is "
     "the same. It is also called activation checkpointing or rematerialisation.",
     "train.recompute", "memory mfu", answers::recompute},
    {"microbatches", "gradient-accumulation accumulation", "Microbatches", TopicGroup::idea, false, false,
     "Microbatches are the parts of a step's batch that are computed one after another. Gradients "
     "are summed over them, so the result is that of the whole batch. More of them need less "
     "memory for activations. Pipelines need several to keep their stages busy.",
     "train.microbatches train.batch", "batch pipeline", answers::batch},
    {"batch", "batch-size", "Batch", TopicGroup::idea, false, false,
     "The batch is the rows of one training step, over all devices. A larger batch makes larger "
     "matrix products, which use an accelerator better, and needs more memory. Beyond the critical "
     "batch size a larger one does not learn more from a token.",
     "train.batch train.microbatches train.optimizer.rate", "microbatches mfu", answers::batch},
    {"mesh", "parallelism layout", "Device mesh", TopicGroup::idea, false, false,
     "The device mesh arranges devices along named axes: data (data parallelism), fsdp (fully "
     "sharded data parallelism), model (tensor parallelism), pipe (pipeline parallelism), context "
     "and expert. The product of their sizes is the number of devices.",
     "mesh sharding fully_sharded", "fsdp tensor-parallel pipeline data-parallel", answers::mesh},
    {"data-parallel", "ddp", "Data parallelism", TopicGroup::idea, false, false,
     "Data parallelism gives each device rows of its own and all of the model. Gradients are "
     "summed over the devices after the backward pass by an all-reduce. It is the axis data of the "
     "mesh. Each device holds all parameters and all of the optimizer's state.",
     "mesh train.batch", "fsdp mesh scaling", answers::fsdp},
    {"fsdp", "zero zero-1 zero-2 zero-3 fully-sharded sharded", "Fully sharded data parallelism (FSDP, ZeRO-3)",
     TopicGroup::idea, false, false,
     "Fully sharded data parallelism is data parallelism in which each device stores only a shard "
     "of the parameters, the gradients and the optimizer's state. A layer's parameters are gathered "
     "when it is computed; its gradients are reduce-scattered. It is the axis fsdp of the mesh. "
     "fully_sharded says what is sharded: state is ZeRO-1, gradients ZeRO-2, parameters ZeRO-3.",
     "mesh fully_sharded", "data-parallel memory mesh", answers::fsdp},
    {"tensor-parallel", "tp megatron", "Tensor parallelism", TopicGroup::idea, false, false,
     "Tensor parallelism divides each layer's matrices over devices: heads of attention, columns "
     "and rows of the feed-forward part. It is the axis model of the mesh. Each layer needs "
     "collectives in both passes, so these devices need the fastest links, within one machine or "
     "one torus.",
     "mesh sharding", "mesh pipeline", answers::mesh},
    {"pipeline", "pipeline-parallel pp", "Pipeline parallelism", TopicGroup::idea, false, false,
     "Pipeline parallelism gives each device some of the layers, a stage. Microbatches pass through "
     "the stages one after another. Stages are idle while the pipeline fills and drains: that is "
     "the bubble. 1f1b begins a backward pass as soon as there is one, so it holds fewer "
     "microbatches than gpipe. Several chunks on a stage make the bubble smaller.",
     "mesh pipeline.schedule pipeline.chunks pipeline.layers train.microbatches", "mesh microbatches", answers::mesh},
    {"precision", "bf16 fp32 mixed-precision dtype", "Precision", TopicGroup::idea, false, false,
     "Precision is four types: of stored parameters, of computation, of sums within a product, and "
     "of gradients that are summed and sent. bf16 has the range of f32 with fewer digits, half the "
     "bytes, and on most accelerators a higher rate. Parameters and the optimizer's state stay f32, "
     "since small updates would be lost below it.",
     "train.precision.parameter train.precision.compute train.precision.accumulate "
     "train.precision.reduce",
     "mfu memory", answers::precision},
    {"exact", "exactness determinism reproducible", "Exact training", TopicGroup::idea, false, false,
     "Exact training gives the same bits after any kill and on any number of workers, on one kind "
     "of machine. The batch is divided into logical shards, which are summed in a fixed order, "
     "whichever worker owns them. Without it, runs agree up to rounding. Exact training refuses an "
     "end by time, since the number of steps would depend on the machine.",
     "train.exact train.logical_shards train.seed data.seed", "checkpoint", answers::exact},
    {"checkpoint", "checkpoints checkpointing save", "Checkpoint", TopicGroup::idea, true, false,
     "A checkpoint is the saved state of a training run: parameters, the optimizer's moments, the "
     "place in the data. A run that was stopped or killed continues from the newest whole one. A "
     "checkpoint is whole or absent, under any fault. Any mesh reads what any other mesh saved.",
     "checkpoint.every checkpoint.keep checkpoint.best checkpoint.asynchronous checkpoint.folder "
     "resume.from",
     "spot exact", answers::checkpoint},
    {"budget", "", "Budget", TopicGroup::idea, false, false,
     "A budget is the dollars that a run may cost. Before the start it is converted to seconds by "
     "the price of the machines; without a known price nothing starts. At the budget the run saves "
     "and stops, at most one step later. A larger budget lets it go on.",
     "objective.budget resources.price", "cost prices", answers::cost},
    {"prices", "price", "Prices", TopicGroup::idea, false, false,
     "Prices come from the catalog, with source and date, in dollars an hour without tax. An "
     "unknown price is never taken as 0, and never wins a comparison. On demand is paid by the "
     "second; spot machines may be taken away; flex-start waits for its turn; a commitment is paid "
     "whether it is used or not. Prices of your own go before those of the catalog.",
     "resources.provisioning resources.price", "cost spot budget", answers::prices},
    {"quota", "quotas", "Quota", TopicGroup::idea, false, false,
     "A quota is a limit of a project in a cloud: a number of GPUs, chips or vCPUs, per region or "
     "in all. New projects often have none for GPUs. `systole render` lists the quotas that a job's "
     "machines need, and `systole check` prints the command that requests more.",
     "resources.accelerators resources.provisioning gke.location", "scheduling", answers::quota},
    {"tokenizer", "vocabulary bpe sentencepiece", "Tokenizer", TopicGroup::idea, false, false,
     "A tokenizer turns text into tokens, which are rows of the model's embedding. It is trained on "
     "the training documents only, or read from a file. It can encode any byte string. A larger "
     "vocabulary means fewer tokens per text and a larger embedding.",
     "data.tokenizer.kind data.tokenizer.vocabulary data.tokenizer.file model.vocabulary", "held-out", nullptr},
    {"held-out", "validation evaluation", "Held-out text", TopicGroup::idea, false, false,
     "Held-out text is set aside before the tokenizer is trained, and never trained on. The model "
     "is evaluated on it in bits per byte, a unit in which tokenizers and compressors can be "
     "compared.",
     "data.held_out.fraction data.held_out.files train.evaluate.every", "tokenizer", nullptr},
    {"moe", "experts mixture-of-experts", "Mixture of experts", TopicGroup::idea, false, false,
     "A mixture of experts has several feed-forward networks in a block, the experts. A router "
     "sends each token to a few of them, so a token uses only some of the parameters. Each expert "
     "has a capacity; tokens beyond it are dropped, unless the model is dropless.",
     "model.moe.experts model.moe.top_k model.moe.capacity_factor model.moe.dropless", "mesh", nullptr},
};

}  // namespace

std::span<const Topic> idea_topics() { return kTopics; }

}  // namespace systole
