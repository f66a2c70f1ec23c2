# Reads named samples, one a line ("name value value ..."), and prints R's own figures, one a line ("name value ...").
lines <- strsplit(readLines(file("stdin")), " ")
data <- lapply(lines, function(line) as.numeric(line[-1]))
names(data) <- sapply(lines, `[`, 1)
tell <- function(name, ...) cat(name, sprintf("%.17g", c(...)), "\n")

stacked <- function(prefix) {
    members <- data[startsWith(names(data), prefix)]
    group <- factor(rep(names(members), lengths(members)), levels = names(members))
    data.frame(value = unlist(members, use.names = FALSE), group = group)
}
groups <- stacked("group")

fit <- aov(value ~ group, groups)
table <- summary(fit)[[1]]
tell("aov", table[["F value"]][1], table[["Df"]], table[["Pr(>F)"]][1])
tell("mean.squares", table[["Mean Sq"]])
honest <- TukeyHSD(fit)$group # second minus first
tell("tukey", t(honest[, c("diff", "lwr", "upr", "p adj")]))
tell("tukey.90", t(TukeyHSD(fit, conf.level = 0.9)$group[, c("diff", "lwr", "upr", "p adj")]))

unequal <- oneway.test(value ~ group, groups, var.equal = FALSE)
tell("oneway", unequal$statistic, unequal$parameter, unequal$p.value)
ranks <- kruskal.test(value ~ group, groups)
tell("kruskal", ranks$statistic, ranks$parameter, ranks$p.value)
tied <- kruskal.test(value ~ group, stacked("tied"))
tell("kruskal.tied", tied$statistic, tied$parameter, tied$p.value)
pairs <- pairwise.wilcox.test(groups$value, groups$group, p.adjust.method = "holm", exact = FALSE)$p.value
tell("rank.pairs", pairs[lower.tri(pairs, diag = TRUE)])

one <- t.test(data$group.a, conf.level = 0.95)
tell("t.one", one$estimate, one$conf.int)
paired <- t.test(data$paired.x, data$paired.y, paired = TRUE, conf.level = 0.9)
tell("t.paired", paired$estimate, paired$conf.int, paired$statistic, paired$p.value)
two <- t.test(data$group.a, data$group.b)
tell("t.welch", two$estimate[1] - two$estimate[2], two$conf.int, two$p.value)

for (name in c("group.a", "group.c", "paired.x")) {
    exact <- wilcox.test(data[[name]], conf.int = TRUE, exact = TRUE)
    tell(paste0("hodges.", name), exact$estimate)
}
tell("holm", p.adjust(data$p, "holm"))
suppressPackageStartupMessages(library(limma))
squeezed <- squeezeVar(data$variances, df = 2)
tell("squeezed", squeezed$var.post)
tell("prior", squeezed$var.prior, squeezed$df.prior)
tell("trigamma.inverse", trigammaInverse(data$inverted))
tell("ptukey", ptukey(3.5, 6, 11.25, lower.tail = FALSE), qtukey(0.95, 6, 11.25))

# Hosts: effects and their variances; metafor's own steps end too early for six digits.
suppressPackageStartupMessages(library(metafor))
for (name in c("alike", "apart", "two")) {
    y <- data[[paste0("hosts.", name, ".y")]]
    v <- data[[paste0("hosts.", name, ".v")]]
    for (method in c("REML", "PM")) {
        steps <- list(threshold = 1e-14, maxiter = 1000, tol = 1e-14)
        fit <- rma(y, v, method = method, test = "knha", level = 90, control = steps)
        new <- predict(fit)
        tell(paste("fleet", name, method, sep = "."), fit$tau2, fit$b, fit$se, fit$ci.lb, fit$ci.ub, new$pi.lb, new$pi.ub)
        tell(paste("adhoc", name, method, sep = "."), rma(y, v, method = method, test = "adhoc", control = steps)$se)
        hosts <- blup(fit)
        tell(paste("blup", name, method, sep = "."), hosts$pred, hosts$se)
        plain <- rma(y, v, method = method, control = steps)
        tell(paste("deviation", name, method, sep = "."), rstandard(plain)$z)
    }
}
tell("bh", p.adjust(data$p, "BH"))
