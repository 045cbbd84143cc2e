"""Several learners: processes that share each gradient step, so that one process no longer limits the training.

The driver's learner builds the batch, as alone. It and its replicas compute the gradients of equal shares of each
minibatch, add them up, and make the same step. So several learners learn what one would learn from the same batch.
"""
